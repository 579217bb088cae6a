"""Java of ours in a JVM that Spark runs in.

Walking a plan through py4j takes a round trip for each node and field. Spark brings along Janino, a
compiler of Java, so a source file of this package becomes a class there, without a build step and
without a jar for every version of Spark.
"""

from __future__ import annotations

from importlib import resources
from typing import Any


def java_object(jvm: Any, package: str, name: str, *arguments: Any) -> Any:
    """Compile a class and return an instance of it.

    Args:
        jvm: py4j's view of the JVM.
        package: Package of ours that has the source file.
        name: Name of the class and, without its suffix, of the file; its Java package is
            `org.stagecoach`, and it has one constructor.
        arguments: What the constructor takes.

    Raises:
        Py4JJavaError: The source cannot be compiled.
    """
    source = resources.files(package).joinpath(f"{name}.java").read_text(encoding="utf-8")
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    constructors = compiler.getClassLoader().loadClass(f"org.stagecoach.{name}").getConstructors()
    values = jvm.java.util.ArrayList()
    for argument in arguments:
        values.add(argument)
    return constructors[0].newInstance(values.toArray())

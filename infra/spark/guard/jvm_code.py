"""Java of ours in a JVM that Spark runs in.

Walking a plan through py4j takes a round trip for each node and field. Spark brings along Janino, a
compiler of Java, so a source file of this package becomes a class there, without a build step and
without a jar for every version of Spark.
"""

from __future__ import annotations

import threading
from importlib import resources
from typing import Any
from weakref import WeakKeyDictionary

# py4j finds a method by the name of its class, so a JVM must have one class of a name.
_classes: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_lock = threading.Lock()


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
    with _lock:
        classes = _classes.setdefault(jvm, {})
        if name not in classes:
            classes[name] = _compiled(jvm, package, name)
    values = jvm.java.util.ArrayList()
    for argument in arguments:
        values.add(argument)
    return classes[name].getConstructors()[0].newInstance(values.toArray())


def _compiled(jvm: Any, package: str, name: str) -> Any:
    source = resources.files(package).joinpath(f"{name}.java").read_text(encoding="utf-8")
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(f"org.stagecoach.{name}")

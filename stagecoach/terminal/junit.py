"""Writes results of tests as JUnit XML, which CI systems read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from stagecoach.assets.project.front_matter import Problem
    from stagecoach.assets.query_tests.run import TestResult

_TAGS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def junit_xml(
    results: Sequence[TestResult],
    problems: Sequence[Problem],
    details: Callable[[TestResult], str],
) -> str:
    """The text of a JUnit file: a suite for each query, an error for each unusable file.

    Args:
        results: How the tests ended.
        problems: What is wrong with files that could not be read.
        details: Text about a test that did not pass.
    """
    root = ET.Element("testsuites", name="stagecoach test")
    for name in dict.fromkeys(result.case.query.name for result in results):
        mine = [result for result in results if result.case.query.name == name]
        suite = _suite(root, name, mine)
        for result in mine:
            case = ET.SubElement(
                suite,
                "testcase",
                classname=name,
                name=_clean(result.case.test.name),
                file=str(result.case.path),
                line=str(result.case.line),
                time=f"{result.seconds:.3f}",
            )
            if (tag := _TAGS.get(result.outcome)) is not None:
                first = result.message.splitlines()[0] if result.message else ""
                ET.SubElement(case, tag, message=_clean(first)).text = _clean(details(result))
    if problems:
        suite = ET.SubElement(
            root,
            "testsuite",
            name="files of tests",
            tests=str(len(problems)),
            failures="0",
            errors=str(len(problems)),
            skipped="0",
            time="0.000",
        )
        for problem in problems:
            name = f"line {problem.line}, column {problem.column}"
            case = ET.SubElement(suite, "testcase", classname=problem.path, name=name)
            ET.SubElement(case, "error", message=_clean(problem.message)).text = _clean(
                str(problem)
            )
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _suite(root: ET.Element, name: str, results: Sequence[TestResult]) -> ET.Element:
    def count(outcome: str) -> str:
        return str(sum(result.outcome == outcome for result in results))

    return ET.SubElement(
        root,
        "testsuite",
        name=name,
        tests=str(len(results)),
        failures=count("failed"),
        errors=count("error"),
        skipped=count("skipped"),
        time=f"{sum(result.seconds for result in results):.3f}",
    )


def _clean(text: str) -> str:
    """The text without characters that XML 1.0 cannot hold."""
    return "".join(c if _is_xml(c) else "\ufffd" for c in text)


def _is_xml(character: str) -> bool:
    if character in "\t\n\r":
        return True
    is_surrogate = "\ud800" <= character <= "\udfff"
    return character >= " " and not is_surrogate and character not in "\ufffe\uffff"

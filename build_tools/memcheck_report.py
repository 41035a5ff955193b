"""What memcheck found in cmargin's modules: ``python -m build_tools.memcheck_report FILE``, see valgrind.sh."""

import sys
from collections import Counter
from xml.etree import ElementTree


def of_ours(error):
    """Whether a compiled module of cmargin is in the stack."""
    return any("/cmargin/" in (frame.findtext("obj") or "") for frame in error.find("stack"))


def described(error, times):
    words = error.findtext("what") or error.findtext("xwhat/text")
    frames = [f"    {frame.findtext('fn') or '?'} ({frame.findtext('obj')})" for frame in error.find("stack")]
    return "\n".join([f"{times} times: {words}", *frames[:12]])


def main(path):
    root = ElementTree.parse(path).getroot()
    times = Counter({pair.findtext("unique"): int(pair.findtext("count")) for pair in root.iter("pair")})
    errors = [error for error in root.findall("error") if not error.findtext("kind").startswith("Leak")]
    found = [error for error in errors if of_ours(error)]
    for error in found:
        print(described(error, times[error.findtext("unique")]))
    print(f"{len(errors)} reports, {len(found)} of them through modules of cmargin")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

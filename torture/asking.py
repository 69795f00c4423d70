"""Ask an index again and again from several threads until told to stop: run by torture.atonce.

Prints one line of JSON: the distinct answers, in the order in which each thread had them.
"""

import json
import os
import sys
import threading

import covary


def ask(index: str, question: str, stop: str, heard: list[str]) -> None:
    """Open and ask until a file appears; note each answer that differs from the last."""
    while not os.path.exists(stop):
        try:
            hits = covary.open_index(index).query(question, "place", "x", top=1000)
            facts = hits.to_dict()
            facts.pop("elapsed_ms")
            line = json.dumps(facts, sort_keys=True)
        except Exception as problem:
            line = f"{type(problem).__name__}: {problem}"
        if not heard or heard[-1] != line:
            heard.append(line)


def main() -> None:
    index, question, stop, threads = sys.argv[1:]
    heard: list[list[str]] = [[] for _ in range(int(threads))]
    asking = [threading.Thread(target=ask, args=(index, question, stop, each)) for each in heard]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    print(json.dumps(heard))


if __name__ == "__main__":
    main()

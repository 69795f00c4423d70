"""Hostile and damaged input of every kind, against one law: covary does no harm.

`./run torture` runs it. `law.py` is the law: nothing deleted, wrong, hung, crashed, leaked or unnamed.
`suites.py` lists what is tried:

- tables: `fuzz.py` damages files of every format (`damage.py`), `hostile.py` makes oversized and hostile
  ones; `goodtables.py` are the good ones beside them, which must be answered for;
- indexes: `indexes.py` damages them bit by bit, `lies.py` writes false contents under checksums that fit
  (`altered.py`);
- their surroundings: `folders.py` holds what is somebody else's, `kills.py` ends processes and fills
  disks, `atonce.py` asks while a writer commits (`asking.py`), `secrets.py` looks for secrets in all that is
  written.

`trials.py` says what a trial is, `workplace.py` and `desk.py` are where its commands run, `running.py`
watches them, and `report.py` says what came of it.
"""

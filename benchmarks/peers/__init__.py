"""TPC-H on other engines of one machine: `python -m benchmarks.peers --scale-factor 10`.

engines.py    which engines there are, and what each needs
runner.py     what runs in a process and an environment of its own, for one engine
process.py    that process as a contender beside the others
__main__.py   all of them in turn, their table and their JSON
"""

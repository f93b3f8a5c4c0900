#!/usr/bin/env python3
"""A checker that finds nothing proves nothing: breaks a good trace in one way at a time and wants
check_trace to say so. check_trace_test.py TRACE REPORT.json"""

import json
import re
import sys

import check_trace


def events(trace, phase, name=None):
    return [e for e in trace["traceEvents"] if e["ph"] == phase and (name is None or e["name"] == name)]


def dump(trace):
    """JSON with times as the checker wants them: three decimals."""
    for event in trace["traceEvents"]:
        for key in ("ts", "dur"):
            if isinstance(event.get(key), float):
                event[key] = f"@{event[key]:.3f}@"
    return re.sub(r'"@([0-9.]+)@"', r"\1", json.dumps(trace))


def overlap(trace, _):
    kernels = [e for e in events(trace, "X") if e["cat"] == "kernel" and e["tid"] == 1]
    kernels[1]["ts"] = kernels[0]["ts"] + 0.001


def nest(trace, _):
    kernels = [e for e in events(trace, "X") if e["cat"] == "kernel" and e["tid"] == 1]
    kernels[0]["dur"] = 1000.0


def dangling(trace, _):
    trace["traceEvents"].remove(events(trace, "f")[0])


def doubled(trace, _):
    trace["traceEvents"].append(dict(events(trace, "s")[0]))


def backwards(trace, _):
    ends = {e["id"]: e for e in events(trace, "f")}
    start = events(trace, "s")[0]
    start["ts"], ends[start["id"]]["ts"] = ends[start["id"]]["ts"], start["ts"]


def adrift(trace, _):
    start = events(trace, "s")[0]
    ends = {e["id"]: e for e in events(trace, "f")}
    start["ts"] = ends[start["id"]]["ts"] = 999.0


def string_pid(trace, _):
    events(trace, "X")[0]["pid"] = "rank 0"


def nameless(trace, _):
    trace["traceEvents"].remove(events(trace, "M", "thread_name")[0])


def named_twice(trace, _):
    trace["traceEvents"].append(dict(events(trace, "M", "process_name")[0]))


def leak(trace, _):
    events(trace, "C")[-1]["args"]["bytes"] += 1


def below_base(trace, _):
    events(trace, "C")[1]["args"]["bytes"] = 1


def no_duration(trace, _):
    del events(trace, "X")[0]["dur"]


def late(trace, _):
    for event in trace["traceEvents"]:
        if "ts" in event:
            event["ts"] += 1.0


def lost_step(trace, _):
    trace["traceEvents"].remove(events(trace, "X", "ProfilerStep#2")[0])


def one_step_less_told(_, report):
    report["steps"]["n"] -= 1


def busier(_, report):
    report["stages"][0]["busy_s"] += 1e-7


def longer(_, report):
    report["step_time_s"] += 1e-8


def more_transfer(_, report):
    report["network"][0]["exposed_s"] += 1e-7


BREAKS = [overlap, nest, dangling, doubled, backwards, adrift, string_pid, nameless, named_twice,
          leak, below_base, no_duration, late, lost_step, one_step_less_told, busier, longer,
          more_transfer]


def main(trace_path, report_path):
    text, report_text = check_trace.load(trace_path), check_trace.load(report_path)
    wrong = []
    for broken in [None] + BREAKS:
        trace, report = json.loads(text), json.loads(report_text)
        if broken is not None:
            broken(trace, report)
        faults, _ = check_trace.check(dump(trace), json.dumps(report))
        name = broken.__name__ if broken else "whole"
        print(f"{name}: {faults[0] if faults else 'no fault'}")
        if bool(faults) != (broken is not None):
            wrong.append(name)
    for bad in ("", "[", '{"traceEvents": [{"ph": "Q"}]}', text.replace(".", ".0", 1)):
        if not check_trace.check(bad)[0]:
            wrong.append(f"text {bad[:40]!r}")
    if wrong:
        print("not judged rightly:", ", ".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

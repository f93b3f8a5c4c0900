#!/usr/bin/env python3
"""Checks a Chrome trace of foretrain with nothing of foretrain: check_trace.py TRACE[.gz] [REPORT.json]

Says every fault on its own line and exits 1, or one line of counts and exits 0. With the report of
the same run the times of the trace are compared with it as well. Python's standard library only.
"""

import bisect
import collections
import gzip
import json
import re
import sys
from fractions import Fraction

TOP_KEYS = ["schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit",
            "baseTimeNanoseconds", "metadata", "traceEvents", "traceName"]
PHASES = {"X": ("name", "cat", "ts", "dur"), "M": ("name", "args"), "C": ("name", "ts", "args"),
          "s": ("name", "cat", "id", "ts"), "f": ("name", "cat", "id", "ts", "bp")}
NAMES = {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}


class Decimal3:
    """A number as written, so that the three decimals of a time can be seen."""

    def __init__(self, text):
        self.text = text
        self.value = Fraction(text)


def nanoseconds(faults, event, key):
    number = event[key]
    if not isinstance(number, Decimal3) or not re.fullmatch(r"\d+\.\d{3}", number.text):
        faults.append(f"{key} is not microseconds with three decimals: {brief(event)}")
        return 0
    return int(number.value * 1000)


def brief(event):
    shown = {key: getattr(value, "text", value) for key, value in event.items() if key != "args"}
    return json.dumps(shown, default=str)


def no_constants(name):
    raise ValueError(f"{name} is no JSON")


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return file.read()


def check_shape(text, trace, faults):
    keys = list(trace)
    if keys != TOP_KEYS:
        faults.append(f"top-level keys are {keys}")
    if not re.search(r'"rank":\s+\d', text):
        faults.append('no "rank": N with white space, which text readers look for')
    for event in trace["traceEvents"]:
        phase = event.get("ph")
        missing = [key for key in PHASES.get(phase, ()) if key not in event]
        if phase not in PHASES or missing:
            faults.append(f"phase {phase} lacks {missing}: {brief(event)}")
        for key in ("pid", "tid") + (("id",) if phase in "sf" else ()):
            if not isinstance(event.get(key), int):
                faults.append(f"{key} is not an integer: {brief(event)}")
    return not faults


def check_nesting(tracks, faults):
    """On one track slices nest or are disjoint; kernels do not even nest."""
    for track, slices in tracks.items():
        open_ends = []
        for start, end, event in sorted(slices, key=lambda s: (s[0], -s[1])):
            while open_ends and open_ends[-1][0] <= start:
                open_ends.pop()
            if open_ends and open_ends[-1][0] < end:
                faults.append(f"slices overlap on {track}: {brief(event)}")
            elif open_ends and event["cat"] == "kernel":
                faults.append(f"a kernel runs inside another on {track}: {brief(event)}")
            open_ends.append((end, event))


def check_actions(tracks, faults):
    """Viewers add times as doubles and leave out an action that seems to begin too early."""
    for track, slices in tracks.items():
        actions = [s for s in slices if s[2]["cat"] == "gpu_user_annotation"]
        for (_, _, event), (_, _, following) in zip(actions, actions[1:]):
            end = float(event["ts"].text) + float(event["dur"].text)
            if end > float(following["ts"].text):
                faults.append(f"read as doubles, actions overlap on {track}: {brief(following)}")


def check_names(trace, tracks, faults):
    names = collections.Counter()
    for event in trace["traceEvents"]:
        if event["ph"] == "M":
            if event["name"] not in NAMES:
                faults.append(f"unknown metadata: {brief(event)}")
            per_process = event["name"].startswith("process")
            names[event["name"], event["pid"], None if per_process else event["tid"]] += 1
    for key, count in names.items():
        if count > 1:
            faults.append(f"{key} is told {count} times")
    for pid, tid in tracks:
        for name, track in (("process_name", None), ("process_sort_index", None),
                            ("thread_name", tid), ("thread_sort_index", tid)):
            if (name, pid, track) not in names:
                faults.append(f"no {name} for {(pid, tid)}")


def encloses(tracks, event, time):
    slices = tracks.get((event["pid"], event["tid"]), [])
    at = bisect.bisect_right(slices, time, key=lambda s: s[0])
    return any(start <= time <= end for start, end, _ in slices[max(0, at - 3):at])


def check_arrows(trace, tracks, faults):
    ends = collections.defaultdict(lambda: {"s": [], "f": []})
    for event in trace["traceEvents"]:
        if event["ph"] in "sf":
            time = nanoseconds(faults, event, "ts")
            ends[event["cat"], event["name"], event["id"]][event["ph"]].append(time)
            if not encloses(tracks, event, time):
                faults.append(f"an arrow touches no slice: {brief(event)}")
            if event["ph"] == "f" and event["bp"] != "e":
                faults.append(f"an arrow ends without bp e: {brief(event)}")
    for key, pair in ends.items():
        if len(pair["s"]) != 1 or len(pair["f"]) != 1:
            faults.append(f"arrow {key} has {len(pair['s'])} starts and {len(pair['f'])} ends")
        elif pair["f"][0] < pair["s"][0]:
            faults.append(f"arrow {key} ends before it starts")
    return len(ends)


def check_counters(trace, faults):
    levels = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "C":
            for series, value in event["args"].items():
                if not isinstance(value, int):
                    faults.append(f"{series} is not an integer: {brief(event)}")
                levels[event["pid"], event["name"], series].append(
                    (nanoseconds(faults, event, "ts"), value))
    for key, points in levels.items():
        if points != sorted(points, key=lambda p: p[0]):
            faults.append(f"counter {key} runs back in time")
        if points[0][1] != points[-1][1]:
            faults.append(f"counter {key} begins at {points[0][1]} and ends at {points[-1][1]}")
        if min(value for _, value in points) < points[0][1]:
            faults.append(f"counter {key} falls below its base")


def steps_of(trace):
    steps = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["name"].startswith("ProfilerStep#"):
            steps[event["pid"]].append(event)
    return steps


def check_steps(trace, tracks, faults):
    steps = steps_of(trace)
    for pid in {pid for pid, _ in tracks}:
        names = [event["name"] for event in steps[pid]]
        if names != [f"ProfilerStep#{i + 1}" for i in range(len(names))] or not names:
            faults.append(f"rank {pid} shows the steps {names}")
    if len({len(events) for events in steps.values()}) > 1:
        faults.append("ranks show different numbers of steps")
    first = min((start for slices in tracks.values() for start, _, _ in slices), default=0)
    if first != 0:
        faults.append(f"the first slice starts at {first} ns, not at 0")


def stage_of(trace, pid):
    for event in trace["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "process_name" and event["pid"] == pid:
            found = re.search(r"pp (\d+)", event["args"]["name"])
            return int(found.group(1)) if found else None
    return None


def working_time(piece):
    start, end, event = piece
    return end - start - event.get("args", {}).get("wait_ns", 0)


def compare(faults, what, shown_ns, told_s, tolerance_ns):
    if abs(shown_ns - told_s * 1e9) > tolerance_ns:
        faults.append(f"{what}: trace {shown_ns * 1e-9:.9f} s, report {told_s:.9f} s, "
                      f"apart by more than {tolerance_ns:.0f} ns")


def check_report(trace, tracks, report, faults):
    """Times of the report, which are means over a stage's ranks, against sums of slices.

    Where the ranks of a stage are alike one of them speaks for all; with stragglers all must be
    shown, and only the mean over them is compared.
    """
    steps = steps_of(trace)
    count = report["steps"]["n"]
    for pid, events in steps.items():
        if len(events) != count:
            faults.append(f"rank {pid} shows {len(events)} steps, the report {count}")
    alike = not report["stragglers"] and not report["breakdown_s"]["straggler"]
    if not alike and len(steps) != report["simulation"]["ranks_total"]:
        return
    stages = {stage["pp_rank"]: stage for stage in report["stages"]}
    shown = collections.defaultdict(list)
    for pid, events in steps.items():
        length = sum(nanoseconds(faults, event, "dur") for event in events)
        if alike:
            compare(faults, f"step of rank {pid}", length / count, report["step_time_s"], 1)
        kernels = [s for s in tracks[pid, 1] if s[2]["cat"] == "kernel"]
        shown[stage_of(trace, pid)].append((sum(map(working_time, kernels)), len(kernels)))
    for stage, ranks in shown.items():
        if stage not in stages:
            faults.append(f"stage {stage} is not in the report")
            continue
        for each in ([[rank] for rank in ranks] if alike else [ranks]):
            busy = sum(time for time, _ in each) / len(each)
            kernels = sum(number for _, number in each) / len(each)
            compare(faults, f"busy time of stage {stage}", busy / count, stages[stage]["busy_s"],
                    kernels / count + 1)
    check_groups(trace, tracks, report, len(steps), count, faults)


def check_groups(trace, tracks, report, ranks, count, faults):
    """Transfer time on the stream of each group, waits for late members taken off."""
    if ranks != report["simulation"]["ranks_total"]:
        return
    names = {(event["pid"], event["tid"]): event["args"]["name"]
             for event in trace["traceEvents"] if event["name"] == "thread_name"}
    transfer = collections.Counter()
    slices = collections.Counter()
    for track, events in tracks.items():
        transfer[names.get(track)] += sum(working_time(s) for s in events)
        slices[names.get(track)] += len(events)
    for network in report["network"]:
        group = network["group"]
        if group in transfer:
            told = network["exposed_s"] + network["hidden_s"]
            compare(faults, f"transfers of {group}", transfer[group] / ranks / count, told,
                    2 * slices[group] / ranks / count + 1)


def check(text, report_text=None):
    faults = []
    try:
        trace = json.loads(text, parse_float=Decimal3, parse_constant=no_constants)
        report = json.loads(report_text) if report_text else None
    except ValueError as error:
        return [f"not JSON: {error}"], ""
    if not isinstance(trace, dict) or "traceEvents" not in trace:
        return ["no traceEvents"], ""
    if not check_shape(text, trace, faults):
        return faults, ""
    tracks = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            start = nanoseconds(faults, event, "ts")
            end = start + nanoseconds(faults, event, "dur")
            tracks[event["pid"], event["tid"]].append((start, end, event))
    for slices in tracks.values():
        slices.sort(key=lambda s: s[0])
    check_nesting(tracks, faults)
    check_actions(tracks, faults)
    check_names(trace, tracks, faults)
    arrows = check_arrows(trace, tracks, faults)
    check_counters(trace, faults)
    check_steps(trace, tracks, faults)
    if report is not None:
        check_report(trace, tracks, report, faults)
    ranks = len({pid for pid, _ in tracks})
    slices = sum(len(track) for track in tracks.values())
    return faults, f"{ranks} ranks, {len(tracks)} tracks, {slices} slices, {arrows} arrows"


def main(arguments):
    if not 1 <= len(arguments) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    faults, summary = check(*(load(path) for path in arguments))
    for fault in faults[:50]:
        print(fault)
    if len(faults) > 50:
        print(f"and {len(faults) - 50} more faults")
    if not faults:
        print(f"{arguments[0]}: {summary}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

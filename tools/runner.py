"""runner -- run test programs side by side and count their cases.

Each program runs by itself with its output captured. A program reports its cases in TAP ("ok",
"not ok"), which cmocka writes when asked; a program that reports none counts as one case by its
exit status. A crash, a time-out, or a bad exit status without a failed case is one failed case
more.
"""
import concurrent.futures
import os
import re
import signal
import subprocess
import time

# Leaks are failures, undefined behaviour says where it happened.
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


class Job:
    """A named command, and after it ran, what came of it."""

    def __init__(self, name, command, timeout=600):
        self.name = name
        self.command = command
        self.timeout = timeout
        self.passed = self.failed = 0
        self.seconds = 0.0
        self.note = ""
        self.output = ""


def describe(status, timeout):
    """An exit status in words, empty for success; None stands for a time-out."""
    if status is None:
        return "timed out after %d s" % timeout
    if status < 0:
        return "killed by " + signal.Signals(-status).name
    return "exit status %d" % status if status else ""


def capture(command, timeout):
    """Runs a command in a process group of its own; returns (output, status or None)."""
    environment = dict(SANITIZERS, **os.environ)
    environment["CMOCKA_MESSAGE_OUTPUT"] = "TAP"
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, env=environment, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout)
        return output, process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return output, None


def count(job, status):
    job.passed = len(re.findall(r"^ok\b", job.output, re.M))
    job.failed = len(re.findall(r"^not ok\b(?!.*# SKIP)", job.output, re.M))
    if status == 0 and job.passed + job.failed == 0:
        job.passed = 1
    if status != 0 and job.failed == 0:
        job.failed = 1


def run(job):
    began = time.monotonic()
    try:
        output, status = capture(job.command, job.timeout)
    except OSError as error:
        output, status = str(error).encode(), 127
    job.seconds = time.monotonic() - began
    job.output = output.decode("utf-8", "replace")
    job.note = describe(status, job.timeout)
    count(job, status)
    return job


def show(job):
    """One line for a job, and all its output when something failed."""
    outcome = "%d passed" % job.passed
    if job.failed:
        outcome += ", %d FAILED" % job.failed
    if job.note:
        outcome += " (%s)" % job.note
    print("  %-44s %7.2f s  %s" % (job.name, job.seconds, outcome), flush=True)
    if job.failed:
        print("".join("    | %s\n" % line for line in job.output.splitlines()), flush=True)


FEW = 3  # cases of one job that show_failed names


def show_failed(jobs):
    """Names again, where the output ends, which jobs failed and in which cases."""
    for job in (job for job in jobs if job.failed):
        print("  FAILED %s %s" % (job.name, job.note), flush=True)
        cases = re.findall(r"^not ok\b(?!.*# SKIP).*", job.output, re.M)
        for line in cases[:FEW] or job.output.splitlines()[-FEW:]:
            print("    | %s" % line, flush=True)


def run_all(jobs, width):
    """Runs jobs, `width` at a time, showing each as it ends; returns (passed, failed)."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=width) as pool:
        running = [pool.submit(run, job) for job in jobs]
        for ended in concurrent.futures.as_completed(running):
            show(ended.result())
    show_failed(jobs)
    return sum(job.passed for job in jobs), sum(job.failed for job in jobs)


def summary(passed, failed):
    return "%d passed, %d failed" % (passed, failed)

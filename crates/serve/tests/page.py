#!/usr/bin/env python3
"""Drives the page of a running `netdyno serve` as its user does, and holds its figures to the report.

    python3 crates/serve/tests/page.py http://127.0.0.1:8080 [--token T] [--netdyno PROGRAM] [--pictures DIR]

The server must be able to make labs (root). Needs chromium and nothing but Python's own library. Status 0 if all is as it should be.
"""

import argparse
import contextlib
import json
import os
import shlex
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, Failed  # noqa: E402

# Every control has a name, every table a caption, and nothing but the state is read out by itself.
NAMELESS = """(() => {
  const bad = [];
  for (const e of document.querySelectorAll("input, select, textarea, button, a, canvas[role=img], dialog")) {
    const named = e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim() || document.getElementById(e.getAttribute("aria-labelledby"))?.textContent;
    if (!named) bad.push(e.outerHTML.slice(0, 120));
  }
  for (const t of document.querySelectorAll("main table")) if (!t.caption?.textContent) bad.push("a table without a caption");
  for (const e of document.querySelectorAll("[aria-live]")) if (!["spoken"].includes(e.id) && e.getAttribute("aria-live") !== "off") bad.push(`live: ${e.id || e.tagName}`);
  for (const name of ["header", "nav", "main"]) if (!document.querySelector(name)) bad.push(`no ${name}`);
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  bad.push(...ids.filter((id, n) => ids.indexOf(id) !== n).map((id) => `twice: #${id}`));
  return bad;
})()"""

# What stands out of the window, or out of its card.
OUTSIDE = """(() => {
  const bad = [];
  if (document.documentElement.scrollWidth > innerWidth) bad.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const box of document.querySelectorAll("figure, .tile, .head, .verdict, .warnings, .field, fieldset")) {
    const outer = box.getBoundingClientRect();
    for (const e of box.querySelectorAll("*")) {
      const inner = e.getBoundingClientRect();
      if (inner.width > 1 && (inner.right > outer.right + 1 || inner.left < outer.left - 2)) bad.push(`${e.tagName} ${e.className} ${e.textContent.slice(0, 40)}`);
    }
  }
  return bad;
})()"""

FIGURES = """Object.fromEntries([...document.querySelectorAll("#run tr[data-name]")].map((row) => [row.dataset.name, Number(row.cells[1].textContent.replaceAll(",", ""))]))"""
STATE = "document.querySelector('#run .head .badge')?.textContent"


def same(found, wanted, what):
    if found != wanted:
        raise Failed(f"{what}: {found!r}, and not {wanted!r}")


class Server:
    def __init__(self, url, token):
        self.url, self.token = url.rstrip("/"), token

    def ask(self, path, body=None, method=None):
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/api/v1/{path}", data, headers, method=method), timeout=90) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def over(self, run):
        """Waits until a run has ended."""
        self.ask(f"runs/{run}/report.json?wait=60s")


class Test:
    def __init__(self, server, page, pictures, netdyno):
        self.server, self.page, self.pictures, self.netdyno = server, page, pictures, netdyno
        self.run = self.other = None

    def leave_nothing(self):
        """Whatever of this test still runs ends."""
        for run in filter(None, [self.run, self.other]):
            with contextlib.suppress(urllib.error.URLError):
                self.server.ask(f"runs/{run}/abort", {})

    def go(self, where):
        self.page.run(f"void (location.hash = {json.dumps(where)})")

    def put(self, field, text):
        """Types into a field."""
        self.page.until(f"document.getElementById({json.dumps(field)})", f"the field {field}")
        self.page.run(f"""(() => {{
          const e = document.getElementById({json.dumps(field)});
          for (let at = e.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
          e.focus(); e.value = {json.dumps(text)};
          e.dispatchEvent(new Event("input", {{ bubbles: true }})); e.dispatchEvent(new Event("change", {{ bubbles: true }}));
        }})()""")

    def click(self, text, within="main > section:not([hidden])"):
        found = self.page.run(f"""(() => {{
          const e = [...document.querySelectorAll({json.dumps(within)} + " button")].find((e) => e.textContent === {json.dumps(text)} && e.checkVisibility());
          e?.click();
          return Boolean(e);
        }})()""")
        if not found:
            raise Failed(f"there is no button `{text}`")

    def look(self, name):
        """At all widths, dark and light, nothing stands out; pictures, if they are wanted."""
        for width in [360, 500, 1300]:
            for dark in [False, True]:
                self.page.size(width, dark=dark)
                # Two pictures of the browser's later all is laid out and drawn.
                self.page.run("new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(resolve), 250)))")
                same(self.page.run(OUTSIDE), [], f"{name}, {width} pixels")
                if self.pictures:
                    self.page.picture(f"{self.pictures}/{name}-{width}{'-dark' if dark else ''}.png")
        self.page.size(1300)
        same(self.page.run(NAMELESS), [], f"{name}: names")

    # Steps, in their order.

    def opens_and_asks_for_nothing_from_elsewhere(self):
        fragment = f"#token={self.server.token}" if self.server.token else ""
        self.page.size(1300)
        self.page.open(f"{self.server.url}/{fragment}")
        self.page.until("document.querySelector('#list h1')?.checkVisibility()", "the list of runs")
        if self.server.token:
            same(self.page.run("location.href"), f"{self.server.url}/", "the address, which has no token any more")
        self.page.until("performance.getEntriesByName('first-contentful-paint').length", "the first picture")
        first = self.page.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        print(f"  first picture after {first:.0f} ms")

    def remembers_no_more_than_a_bound(self):
        found = self.page.run("""import("/assets/history.js").then(({ History, perSecond }) => {
          const history = new History();
          const n = 200_000;
          for (let i = 1; i <= n; i++) history.push({ elapsed_ns: i * 1e8, tx: { frames: i * 1000, bytes: 0 } });
          const points = history.points, rates = points.slice(1).map((p, k) => perSecond(p, points[k], (p) => p.sent));
          return [points.length <= 3600 && points.length > 1000, points.at(-1).sent === n * 1000, rates.every((r) => Math.abs(r - 10000) < 1e-6)];
        })""")
        same(found, [True, True, True], "history: bounded, has the newest, exact")

    def tells_what_is_wrong_beside_the_field(self):
        self.go("#/new")
        self.page.until("document.getElementById('field-rate')", "the form")
        self.put("recipe", "0")
        self.put("field-rate", "5")
        self.page.until("document.getElementById('field-rate-fault').textContent.includes('unit')", "what is wrong with the rate")
        same(self.page.run("document.getElementById('field-rate').getAttribute('aria-invalid')"), "true", "the field is marked")
        self.look("form")
        self.put("field-rate", "4kpps")
        self.put("field-duration", "10m")
        self.put("field-engine", "packet")
        self.page.until("document.getElementById('field-rate-fault').textContent === ''", "the rate is right")
        self.page.until("document.getElementById('command-line').textContent.includes('4kpps')", "the command line")

    def has_a_form_for_each_kind_and_recipes_that_are_jobs(self):
        for kind in self.page.run("[...document.getElementById('kind').options].map((o) => o.value)"):
            self.put("kind", kind)
            if not self.page.run("document.querySelectorAll('#job-form .field [id^=field-]').length > 2"):
                raise Failed(f"the form of {kind} has no fields")
            same(self.page.run(NAMELESS), [], f"form of {kind}")
        for recipe in self.page.run("[...document.getElementById('recipe').options].filter((o) => o.value && !o.textContent.includes('capture')).map((o) => o.value)"):
            self.put("recipe", recipe)
            faults = "[...document.querySelectorAll('#job-form .fault, #job-form .faults')].map((e) => e.textContent).join('')"
            self.page.until(f"document.getElementById('command-line').textContent !== '…' || {faults}", "what the server says of the recipe")
            same(self.page.run(faults), "", f"recipe {recipe}")
            self.means_the_same(self.page.run("document.getElementById('command-line').textContent"), json.loads(self.page.run("document.getElementById('job-text').value")))
        self.put("recipe", "0")
        self.put("field-rate", "4kpps")
        self.put("field-duration", "10m")
        self.put("field-engine", "packet")
        self.page.until("document.getElementById('command-line').textContent.includes('4kpps')", "the command line")

    def means_the_same(self, command, job):
        """The command line of a job comes to that job."""
        if not self.netdyno:
            return
        said = shlex.split(command)
        printed = subprocess.run([self.netdyno, *said[1:], "--print-job"], capture_output=True, text=True)
        if said[0] != "netdyno" or printed.returncode:
            raise Failed(f"{command}: {printed.stderr}")
        found, wanted = json.loads(printed.stdout), self.server.ask("runs?dry=1", {"job": job})["job"]
        # A command line looks its plugin up at once.
        found.get("plugin", {}).pop("version", None)
        same(found, wanted, command)

    def starts_a_job(self):
        self.click("Start")
        self.page.until("location.hash.startsWith('#/runs/')", "the run is shown")
        self.run = self.page.run("location.hash.split('/')[2]")
        self.page.until(f"{STATE} === 'running'", "it runs")
        self.page.until(f"({FIGURES}).received > 4000", "frames arrive")
        self.look("run")

    def pauses_by_key(self):
        self.page.run("document.activeElement.blur()")
        self.page.press(" ", code="Space")
        self.page.until(f"{STATE} === 'paused'", "it pauses")
        # What had been on its way is counted within the time of a snapshot or two.
        time.sleep(1)
        before = self.page.run(FIGURES)["sent"]
        time.sleep(1)
        same(self.page.run(FIGURES)["sent"], before, "frames sent while it is paused")
        self.page.press(" ", code="Space")
        self.page.until(f"{STATE} === 'running'", "it resumes")
        self.page.until(f"({FIGURES}).sent > {before}", "more frames are sent")

    def changes_the_rate(self):
        self.put("rate-by-hand", "2kpps")
        self.click("Set")
        self.page.until("document.querySelector('#run .head .mono').textContent.includes('50 %')", "half of the rate")
        self.page.run("document.activeElement.blur()")
        self.page.press("+")
        self.page.until("document.querySelector('#run .head .mono').textContent.includes('60 %')", "a tenth more")
        self.put("rate-by-hand", "10")
        self.click("Set")
        self.page.until("document.querySelector('#run .answer').textContent.includes('unit')", "a rate without a unit is refused")

    def draws_nothing_while_hidden(self):
        self.page.run("Object.defineProperty(document, 'hidden', { configurable: true, get: () => true }); document.dispatchEvent(new Event('visibilitychange'))")
        time.sleep(0.5)
        drawn = "Number(document.getElementById('run').dataset.pictures)"
        before = self.page.run(drawn)
        time.sleep(1.5)
        same(self.page.run(drawn), before, "pictures while it is hidden")
        self.page.run("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        begin = time.monotonic()
        self.page.until(f"{drawn} > {before}", "it draws again")
        before, begin = self.page.run(drawn), time.monotonic()
        time.sleep(3)
        a_second = (self.page.run(drawn) - before) / (time.monotonic() - begin)
        print(f"  {a_second:.1f} pictures a second")
        if a_second > 10.5:
            raise Failed(f"{a_second} pictures a second")

    def comes_back_after_a_break(self):
        self.page.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        # What is open stays so; a new view needs a new connection.
        self.go("#/")
        self.go(f"#/runs/{self.run}")
        self.page.until("document.getElementById('connection').textContent.startsWith('disconnected')", "it says that it is disconnected")
        self.page.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        self.page.until("document.getElementById('connection').textContent === 'connected'", "it is connected again")
        self.page.until(f"{STATE} === 'running' && ({FIGURES}).sent > 0", "the figures are there again")
        self.page.said[:] = [said for said in self.page.said if "ERR_INTERNET_DISCONNECTED" not in said]

    def stops_when_asked_twice(self):
        self.page.run("document.activeElement.blur()")
        self.page.press("q")
        self.page.until("document.getElementById('ask').open", "it asks first")
        self.click("No", "#ask")
        time.sleep(0.5)
        same(self.page.run(STATE), "running", "the state after No")
        self.page.press("q")
        self.page.until("document.getElementById('ask').open", "it asks again")
        self.click("Yes", "#ask")
        self.page.until("document.querySelector('#run .verdict')?.checkVisibility()", "the verdict")
        same(self.page.run("[...document.querySelectorAll('#run .verdict .links')][0].textContent"), "Report: HTML · JSON · CSV", "the links")

    def tells_what_the_report_tells(self):
        report = self.server.ask(f"runs/{self.run}/report.json?wait=30s")["result"]
        wanted = {"offered": report["tx"]["intended_frames"], "sent": report["tx"]["frames"], "received": report["rx"]["frames"], "lost": report["loss"]["frames"]}
        self.page.until(f"(({FIGURES}).sent === {wanted['sent']})", "the report's figures")
        found = self.page.run(FIGURES)
        same({key: found[key] for key in wanted}, wanted, "the page's figures, and the report's")
        self.look("over")

    def shows_a_run_that_ended_before_it_was_opened(self):
        self.go("#/")
        self.page.until("document.querySelector('#list tbody tr')", "the list")
        self.go(f"#/runs/{self.run}")
        self.page.until("document.querySelector('#run .verdict')?.checkVisibility()", "the verdict")
        self.page.until("document.querySelector('#run figure')?.checkVisibility() && document.querySelector('#run figure output').textContent.includes('sent')", "its chart")

    def takes_a_capture(self):
        frame = bytes.fromhex("020000000001020000000002080045000020000040004011b6c50a000001c6120001000700090000000000000000")[:46]
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/a <b>.pcap"
            with open(path, "wb") as file:
                file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
                for n in range(1000):
                    file.write(struct.pack("<IIII", 1, n * 500, len(frame), len(frame)) + frame)
            self.go("#/new")
            self.page.until("document.getElementById('field-rate')", "the form")
            root = self.page.call("DOM.getDocument")["root"]["nodeId"]
            node = self.page.call("DOM.querySelector", nodeId=root, selector="#capture")["nodeId"]
            self.page.call("DOM.setFileInputFiles", nodeId=node, files=[path])
            self.page.until("document.getElementById('kind').value === 'replay' && document.getElementById('field-captures').value.includes('<b>')", "the capture is taken")
        self.put("field-rate", "1kpps")
        self.click("Start")
        self.page.until("location.hash.startsWith('#/runs/')", "the replay is shown")
        self.other = self.page.run("location.hash.split('/')[2]")
        self.page.until("document.querySelector('#run .verdict')?.checkVisibility()", "the replay's verdict")
        report = self.server.ask(f"runs/{self.other}/report.json?wait=30s")["result"]
        same(report["tx"]["frames"], 1000, "frames replayed")
        self.page.until(f"({FIGURES}).sent === 1000", "the page's frames replayed")

    def compares_two(self):
        self.go("#/")
        self.page.until(f"document.querySelector('#list tbody tr input[aria-label=\"choose {self.other}\"]')", "the list")
        self.look("list")
        for run in [self.run, self.other]:
            self.page.run(f"document.querySelector('#list input[aria-label=\"choose {run}\"]').click()")
        self.click("Compare the chosen")
        self.page.until("document.querySelector('#compare tbody tr')", "the comparison")
        sent = self.page.run("[...document.querySelectorAll('#compare tbody tr')].find((r) => r.cells[0].textContent === 'frames sent').cells[2].textContent")
        same(sent, "1,000", "frames of the second")
        self.look("comparison")

    def draws_trends_of_three(self):
        for _ in range(2):
            run = self.server.ask("runs", {"job": {"kind": "send", "what": "ipv4/udp", "lab": {}, "rate": "5kpps", "count": 1000}})["run"]
            self.server.over(run)
        self.go(f"#/compare/{self.run},{self.other},{run}")
        self.page.until("document.querySelectorAll('#compare svg circle').length === 3", "a point for each run")
        self.put("trend", self.page.run("[...document.getElementById('trend').options].find((o) => o.textContent === 'frames sent').value"))
        self.page.until("document.querySelector('#compare svg').getAttribute('aria-label').includes('1,000')", "what the trend tells")
        self.look("trend")

    def shows_the_host(self):
        self.go("#/host")
        self.page.until("document.querySelectorAll('#machine table').length > 1", "what the host is")
        self.look("host")

    def said_nothing_wrong(self):
        # Refused jobs are answered with 400 or 422, which a console tells as errors.
        same([said for said in self.page.said if "status of 4" not in said], [], "what the console says")
        same([url for url in self.page.requests if not url.startswith((self.server.url, "blob:", "about:"))], [], "what was asked for elsewhere")

    STEPS = [opens_and_asks_for_nothing_from_elsewhere, remembers_no_more_than_a_bound, tells_what_is_wrong_beside_the_field, has_a_form_for_each_kind_and_recipes_that_are_jobs,
             starts_a_job, pauses_by_key, changes_the_rate,
             draws_nothing_while_hidden, comes_back_after_a_break, stops_when_asked_twice, tells_what_the_report_tells, shows_a_run_that_ended_before_it_was_opened,
             takes_a_capture, compares_two, draws_trends_of_three, shows_the_host, said_nothing_wrong]


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("url")
    words.add_argument("--token")
    words.add_argument("--pictures", metavar="DIR", help="keep pictures of all views there")
    words.add_argument("--netdyno", metavar="PROGRAM", help="hold command lines that the page shows to the jobs they stand for")
    said = words.parse_args()
    if said.pictures:
        os.makedirs(said.pictures, exist_ok=True)
    with Browser() as browser:
        test = Test(Server(said.url, said.token), browser.page(), said.pictures, said.netdyno)
        try:
            for step in Test.STEPS:
                print(step.__name__.replace("_", " "), flush=True)
                step(test)
        except (Failed, urllib.error.URLError) as error:
            print(f"page.py: {step.__name__}: {error}", file=sys.stderr)
            return 1
        finally:
            test.leave_nothing()
    print("all is as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())

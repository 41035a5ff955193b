"""Looks over the built site: ``python -m build_tools.check_site FOLDER [--browser none] [--widths 390,1280]``.

Without a browser: links and figures that are not there, pages and anchors alike, and figures of no size. With one,
which is looked for, every page is drawn at the widths of a phone and of a screen: figures that the browser cannot show,
pages wider than the window, and formulas that are not wholly within what their box and those around it show.
"""

import argparse
import http.server
import json
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FIGURES = {".png", ".svg", ".jpg", ".jpeg", ".gif"}
ADDRESS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}
# A page is drawn in a frame of each width; its answers go back to the server that it came from. What a formula draws
# are the boxes of its elements: outside of what its own box and those around it show, they are cut off
FRAMES = r"""<!doctype html><meta charset="utf-8"><body><script>
const pages = PAGES, widths = WIDTHS, frame = document.createElement("iframe"), found = [];
frame.style.cssText = "height: 844px; border: 0";
const loaded = page => new Promise(done => { frame.onload = done; frame.src = "/" + page; });
const shown = image => image.complete || new Promise(done => { image.onload = image.onerror = done; });
const nextDrawing = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
const visible = (node, window) => {
  const box = {left: 0, right: window.innerWidth, top: -Infinity, bottom: Infinity};
  for (; node && node.nodeName != "BODY"; node = node.parentElement) {
    const style = window.getComputedStyle(node), here = node.getBoundingClientRect();
    if (style.overflowX != "visible" || style.overflowY != "visible") {
      box.left = Math.max(box.left, here.left); box.right = Math.min(box.right, here.left + node.clientWidth);
      box.top = Math.max(box.top, here.top); box.bottom = Math.min(box.bottom, here.top + node.clientHeight);
    }
  }
  return box;
};
const cut = (formula, window) => {
  const box = visible(formula, window);
  return [...formula.querySelectorAll("mi, mn, mo, mtext, mfrac, msqrt")].some(part => {
    const ink = part.getBoundingClientRect();
    return ink.width && (ink.left < box.left - 1 || ink.right > box.right + 1 || ink.top < box.top - 1
                         || ink.bottom > box.bottom + 1);
  });
};
(async () => {
  document.body.append(frame);
  for (const page of pages) {
    frame.style.width = widths[0] + "px";
    await loaded(page);
    const there = frame.contentDocument, images = [...there.images];
    images.forEach(image => { image.loading = "eager"; });
    await Promise.all(images.map(shown));
    for (const image of images) if (!image.naturalWidth) found.push(page + ": no picture: " + image.src);
    for (const width of widths) {
      frame.style.width = width + "px";
      await nextDrawing();
      const at = page + ", in a window of " + width + ": ", wide = there.documentElement.scrollWidth;
      if (wide > width) found.push(at + wide + " wide");
      for (const formula of there.querySelectorAll(".formula"))
        if (formula.checkVisibility() && cut(formula, frame.contentWindow))
          found.push(at + "cut off: " + formula.textContent.replace(/\s+/g, " ").trim().slice(0, 60));
    }
  }
  await fetch("/found", {method: "POST", body: JSON.stringify(found)});
})().catch(error => fetch("/found", {method: "POST", body: JSON.stringify([String(error)])}));
</script></body>"""


class Page(HTMLParser):
    """Anchors of a page, and what it points to."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.addresses = {"", "top"}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        address = given.get(ADDRESS.get(tag))
        if address:
            self.addresses.append(address)


def pages_of(site):
    """Paths of the pages; what a theme keeps among its styles is none."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]


def missing(site):
    """A line for every link, figure, style or script of the site that leads nowhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in pages_of(site)}
    for path, page in pages.items():
        for address in dict.fromkeys(page.addresses):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if there.is_dir():
                there /= "index.html"
            if not there.is_file() or site not in there.parents:
                yield f"{path.relative_to(site)}: leads nowhere: {address}"
            elif there in pages and unquote(parts.fragment) not in pages[there].anchors:
                yield f"{path.relative_to(site)}: no such place: {address}"
            elif there.suffix in FIGURES and not there.stat().st_size:
                yield f"{path.relative_to(site)}: an empty figure: {address}"


def served(site, frames, found):
    """A server of the site and of the page with the frame; what it is told goes to the queue ``found``."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(site))

        def do_GET(self):
            if self.path != "/frames":
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(frames.encode())

        def do_POST(self):
            found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words):
            pass

    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def drawn(site, browser, widths, seconds):
    """A line for every figure that the browser has not shown, and for what does not fit into windows of ``widths``."""
    pages = [path.relative_to(site).as_posix() for path in pages_of(site)]
    frames, found = FRAMES.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(widths)), queue.Queue()
    with served(site, frames, found) as server, tempfile.TemporaryDirectory() as profile:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        process = subprocess.Popen(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
             "--no-first-run", f"--user-data-dir={profile}", "--remote-debugging-port=0", "--window-size=1400,900",
             f"http://127.0.0.1:{server.server_port}/frames"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return found.get(timeout=seconds)
        except queue.Empty:
            return [f"{browser} has not drawn {len(pages)} pages in {seconds:.0f} s"]
        finally:
            process.terminate()
            process.wait(30)
            server.shutdown()


def main(argv=None):
    parser = argparse.ArgumentParser(description="Look over a site that Sphinx has built.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--browser", metavar="PROGRAM", help=(
        f"a program that takes chromium's options, or none; default: the first there is of {', '.join(BROWSERS)}"))
    parser.add_argument("--widths", default="390,1280", help="of windows, in pixels; default: a phone's and a screen's")
    parser.add_argument("--seconds", type=float, default=600.0, help="for the browser; default: 600")
    arguments = parser.parse_args(argv)
    site = arguments.folder.resolve()
    n_pages = len(pages_of(site))
    if not n_pages:
        parser.error(f"{arguments.folder} has no pages")
    asked = arguments.browser
    if asked not in (None, "none") and not shutil.which(asked):
        parser.error(f"there is no program {asked}")
    browser = asked or next(filter(shutil.which, BROWSERS), "none")
    widths = [*map(int, arguments.widths.split(","))]
    found = list(missing(site))
    if browser != "none":
        found += drawn(site, browser, widths, arguments.seconds)
    elif asked is None:
        print(f"There is no browser ({', '.join(BROWSERS)}): pages are not drawn, and no formula is measured.")
    print(*found, f"{n_pages} pages, {len(found)} faults", sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

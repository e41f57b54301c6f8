"""The browser that pages are tried in, where one is installed."""

import shutil

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    # virtual time passes while the page unpacks its data, however busy the machine is
    "--virtual-time-budget=30000",
)

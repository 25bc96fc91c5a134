"""A site whose service worker answers for it: from its cache, by itself, and by asking the site."""

from collections import Counter

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

PAGE = """
<!doctype html><title>Worker</title><body><script type="module">
navigator.serviceWorker.register("/assets/worker.js", { scope: "/" });
await navigator.serviceWorker.ready;
if (navigator.serviceWorker.controller === null) {
  await new Promise((resolve) => {
    navigator.serviceWorker.addEventListener("controllerchange", resolve);
  });
}
const seen = [];
for (const path of ["cached", "passed", "made", "direct", "passed"]) {
  const answer = await fetch(`/api/${path}`);
  seen.push([path, answer.status, await answer.json()]);
}
document.body.dataset.seen = JSON.stringify(seen);
</script>
"""
WORKER = """
const precache = async () => (await caches.open("1")).add("/api/cached");
const start = async () => {
  await registration.navigationPreload.enable();
  await clients.claim();
};
oninstall = (event) => event.waitUntil(precache().then(() => skipWaiting()));
onactivate = (event) => event.waitUntil(start());
onfetch = (event) => {
  const path = new URL(event.request.url).pathname;
  if (event.request.mode === "navigate") event.respondWith(event.preloadResponse);
  if (path === "/api/cached") event.respondWith(caches.match(event.request));
  if (path === "/api/passed") event.respondWith(fetch(event.request));
  if (path === "/api/made") event.respondWith(Response.json({ made: true }));
};
"""


class WorkerSite:
    """The site; its answers count how often it was asked."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def app(self) -> Starlette:
        async def page(_request: Request) -> Response:
            return HTMLResponse(PAGE)

        async def worker(_request: Request) -> Response:
            headers = {"service-worker-allowed": "/"}
            return Response(WORKER, media_type="text/javascript", headers=headers)

        async def api(request: Request) -> Response:
            name: str = request.path_params["name"]
            self._asked[name] += 1
            return JSONResponse({name: self._asked[name]})

        return Starlette(
            routes=[
                Route("/", page),
                Route("/again", page),
                Route("/assets/worker.js", worker),
                Route("/api/{name}", api),
            ]
        )

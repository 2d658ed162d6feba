"""Runs the checks of REDbot on requests and prints what it notes.

Its command line can send neither credentials nor HEAD, so this calls the same
class as that does. Standard input is a JSON array of {"name", "method", "url",
"headers": {...}}; standard output one of {"name", "status", "notes": [{"id",
"level", "summary"}]}.
"""

import json
import sys
from configparser import ConfigParser

import thor
from redbot.resource import HttpResource


def notes_of(resource):
    "The notes on an answer, and on the answers to the checks that followed it."
    seen = {}

    def collect(notes, where):
        for note in notes:
            key = (type(note).__name__, note.summary)
            if key not in seen:
                seen[key] = {"id": key[0], "level": note.level.value, "summary": note.summary + where}
            collect(note.subnotes, where)

    collect(resource.response.notes, "")
    for check_id, check in resource.subreqs.items():
        collect(check.response.notes, " (%s)" % check_id)
    return list(seen.values())


def main():
    parser = ConfigParser()
    parser.read_dict({"redbot": {"enable_local_access": "True"}})
    requests = json.load(sys.stdin)
    results = []

    def next_request():
        if not requests:
            thor.stop()
            return
        request = requests.pop(0)
        resource = HttpResource(parser["redbot"])
        resource.set_request(request["url"], request["method"], list((request["headers"] or {}).items()))

        # REDbot judges an answer without its request; what may stand in the answer
        # to a preflight depends on that.
        for fetcher in [resource, *resource.subreqs.values()]:
            fetcher.response.request = fetcher.request

        def done():
            if resource.fetch_error is not None:
                raise SystemExit("%s: %s" % (request["name"], resource.fetch_error.desc))
            status = resource.response.status_code
            results.append({"name": request["name"], "status": status, "notes": notes_of(resource)})
            thor.schedule(0, next_request)

        resource.once("check_done", done)
        resource.check()

    thor.schedule(0, next_request)
    thor.run()
    json.dump(results, sys.stdout)


main()

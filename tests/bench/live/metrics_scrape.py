"""metrics.scrape: GET /metrics with 10,000 jobs and 1,000 tenants, over one connection. metrics_scrape.py FOLDER"""
import http.client
import os
import sys
import time

from live_site import Site, answer, percentile

JOBS, TENANTS, SCRAPES = 10000, 1000, 200


def main():
    with Site(sys.argv[1], tenants=TENANTS, model=False) as site:
        tenants = TENANTS if os.geteuid() == 0 else 1
        site.fill(JOBS, tenants)
        c = http.client.HTTPConnection("127.0.0.1", site.port)
        took, before = [], None
        for i in range(SCRAPES + 1):
            if i == 1:
                before = site.cpu_s()
            began = time.perf_counter()
            c.request("GET", "/metrics")
            reply = c.getresponse()
            text = reply.read()
            if i:
                took.append(1e3 * (time.perf_counter() - began))
            assert reply.status == 200, reply.status
        cpu_ms = 1e3 * (site.cpu_s() - before) / SCRAPES
        told = sum(1 for line in text.splitlines() if line.startswith(b"postrider_tenant_queued{"))
        queued = float([x for x in text.decode().splitlines() if x.startswith('postrider_jobs{state="queued"}')][0].split()[1])
        answer(percentile(took, 50),
               "GET /metrics with %d jobs and %d tenants, median of %d; p99 %.2f ms, processor time of the daemon %.2f ms, "
               "%d bytes" % (queued, told - 1, SCRAPES, percentile(took, 99), cpu_ms, len(text)),
               queued == JOBS and told - 1 == tenants)


main()

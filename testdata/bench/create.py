"""Creates the trackings of a CSV with threads, and keeps no record of anything.

create.py FILE HOST:PORT PATH ROWS_PER_CALL WORKERS
"""
import csv
import http.client
import json
import queue
import sys
import threading

file, host, path, size, workers = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
headers = {"Authorization": "k1", "Content-Type": "application/json"}
work = queue.Queue(2 * workers)
failed = []


def send():
    connection = http.client.HTTPConnection(host)
    while (batch := work.get()) is not None:
        if failed:
            continue
        try:
            connection.request("POST", path, json.dumps({"data": batch}), headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                failed.append(answer.status)
        except Exception as e:
            failed.append(e)


threads = [threading.Thread(target=send) for _ in range(workers)]
for t in threads:
    t.start()
with open(file, newline="") as rows:
    reader = csv.reader(rows)
    next(reader)
    batch = []
    for refer, number, carrier in reader:
        batch.append({"referId": refer, "rawTrackingNumber": number, "metadata": {"carrierCode": carrier}})
        if len(batch) == size:
            work.put(batch)
            batch = []
    if batch:
        work.put(batch)
for t in threads:
    work.put(None)
for t in threads:
    t.join()
if failed:
    sys.exit(f"failed: {failed[0]}")

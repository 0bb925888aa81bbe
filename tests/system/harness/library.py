"""Posts that must not get lost: writers through the API, and readers of whole profiles, page by page, while old posts
move to the archive and reads are cached."""

import http.client
import json
import random
import shutil
import threading

from . import processes

PROFILE_MAX = 20
PAGE, PAGES = 20, 8  # how far a reader goes: well past the border to the archive
TIMEOUT_S = 2


def ask(gateway, method, path, body=None, timeout=TIMEOUT_S, **claims):
    """Returns (status, JSON) on a new connection; status 0: there was no answer in time."""
    headers = gateway.bearer(**{"scope": "read write", **claims})
    if body is not None:
        headers["Content-Type"] = "application/json"
    kind = http.client.HTTPSConnection if gateway.tls else http.client.HTTPConnection
    more = {"context": gateway.tls} if gateway.tls else {}
    connection = kind("127.0.0.1", gateway.port, timeout=timeout, **more)
    try:
        connection.request(method, path, body and json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    except (OSError, http.client.HTTPException, ValueError):
        return 0, None
    finally:
        connection.close()


class Library:
    """`users`: ids of those who write. `storm.gateway` is looked up each time: it may be replaced."""

    def __init__(self, storm, users, archive_file, readers=3):
        self.storm, self.archive_file = storm, archive_file
        self.acknowledged = {user: [] for user in users}  # posts, ordered by id
        self.walks = self.given_up = self.unanswered = 0
        self.holes = []  # (user, the requested page, posts that it lacked)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(user,), daemon=True) for user in users]
        self._threads += [threading.Thread(target=self._read, args=(seed,), daemon=True)
                          for seed in range(readers)]
        for thread in self._threads:
            thread.start()

    def _write(self, user):
        while not self._over.wait(0.1):
            number = len(self.acknowledged[user])
            status, post = ask(self.storm.gateway, "POST", "/v1/posts", {"text": f"post {number}"}, sub=user)
            if status == 201:
                self.acknowledged[user].append(int(post["id"]))
            else:
                self.unanswered += 1

    def _read(self, seed):
        rng = random.Random(seed)
        users = list(self.acknowledged)
        while not self._over.wait(0.02):
            user = rng.choice(users)
            known = list(self.acknowledged[user])
            if self.walk(user, known, PAGES) is None:
                self.given_up += 1

    def walk(self, user, known, pages):
        """Returns how many `known` posts are missing from the newest pages of a profile; None: not all could be read.
        """
        before, left_out = None, 0
        known = set(known)
        for _ in range(pages):
            where = f"&before={before}" if before else ""
            status, page = ask(self.storm.gateway, "GET", f"/v1/users/{user}/posts?limit={PAGE}{where}", sub=user)
            if status != 200:
                return None
            ids = {int(post["id"]) for post in page["items"]}
            end = min(ids, default=0)
            due = {post for post in known if post >= end and (before is None or post < before)}
            if due - ids:
                left_out += len(due - ids)
                self.holes.append((user, before, sorted(due - ids)))
            if not ids:
                break
            before = end
        self.walks += 1
        return left_out

    def stop(self):
        self._over.set()
        for thread in self._threads:
            thread.join(60)

    def lost(self):
        """Returns the acknowledged posts that are on no page in the end."""
        count = 0
        for user, known in self.acknowledged.items():
            left_out = self.walk(user, known, pages=1_000_000)
            if left_out is None:
                raise AssertionError(f"the posts of {user} cannot be read")
            count += left_out
        return count

    # The archive

    def _files(self):
        return [self.archive_file.with_name(self.archive_file.name + end) for end in ("", "-wal")]

    def take_archive(self, pause, pids):
        """The file is removed while programs have it open, and restored from a backup made at that moment. Nothing may
        be written into the removed file. `pids`: processes that might write meanwhile."""
        with processes.stopped(pids):
            for file in self._files():
                if file.exists():
                    shutil.copy(file, f"{file}.backup")
            for end in ("", "-wal", "-shm"):
                self.archive_file.with_name(self.archive_file.name + end).unlink(missing_ok=True)
        pause()
        for file in reversed(self._files()):
            backup = file.with_name(f"{file.name}.backup")
            if backup.exists():
                backup.rename(file)

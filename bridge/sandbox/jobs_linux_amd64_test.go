package sandbox_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
)

// job is something that people do every day, and what it writes.
type job struct {
	name, script, stdout string
	// socket says that it needs a socket, a terminal or shared memory, which tier L has
	// none of.
	socket bool
}

// everydayJobs use programs of the system; those that are not there are left out.
var everydayJobs = []job{
	{name: "git init, commit, branch, merge", script: "git init -q r && cd r && git config user.email a@b && git config user.name a && echo 1 > f && git add f && git commit -qm one && git checkout -qb b && echo 2 >> f && git commit -qam two && git checkout -q - && git merge -q b && git log --oneline | wc -l", stdout: "2\n"},
	{name: "git clone", script: "git init -q r && cd r && git config user.email a@b && git config user.name a && echo 1 > f && git add f && git commit -qm one && cd .. && git clone -q r c && cat c/f", stdout: "1\n"},
	{name: "git stash", script: "git init -q r && cd r && git config user.email a@b && git config user.name a && echo 1 > f && git add f && git commit -qm one && echo 2 > f && git stash -q && cat f", stdout: "1\n"},
	{name: "git worktree", script: "git init -q r && cd r && git config user.email a@b && git config user.name a && echo 1 > f && git add f && git commit -qm one && git worktree add -q ../w && cat ../w/f", stdout: "1\n"},
	{name: "python", script: "python3 -c 'import json,hashlib,re; print(json.dumps({\"a\": 1}))'", stdout: "{\"a\": 1}\n"},
	{name: "python writes bytecode", script: "echo 'x=1' > m.py && python3 -c 'import m; print(m.x)' && ls __pycache__ | wc -l", stdout: "1\n1\n"},
	{name: "python subprocess", script: "python3 -c 'import subprocess; print(subprocess.check_output([\"echo\",\"a\"]).decode())'", stdout: "a\n\n"},
	{name: "python tempfile", script: "python3 -c 'import tempfile; f=tempfile.NamedTemporaryFile(); f.write(b\"x\"); f.flush(); print(open(f.name).read())'", stdout: "x\n"},
	{name: "python threads", script: "python3 -c 'import concurrent.futures as c; print(sum(c.ThreadPoolExecutor(8).map(int, range(100))))'", stdout: "4950\n"},
	{name: "python sqlite", script: "python3 -c 'import sqlite3; c=sqlite3.connect(\"a.db\"); c.execute(\"create table t(a)\"); c.execute(\"insert into t values(7)\"); c.commit(); print(c.execute(\"select * from t\").fetchall())'", stdout: "[(7,)]\n"},
	{name: "python multiprocessing", script: "echo 'import multiprocessing as m\nif __name__==\"__main__\": print(sum(m.Pool(2).map(abs,[-1,-2])))' > p.py && python3 p.py", stdout: "3\n", socket: true},
	{name: "python asyncio", script: "python3 -c 'import asyncio; print(asyncio.run(asyncio.sleep(0, 5)))'", stdout: "5\n"},
	{name: "python http server", script: "python3 -c 'import http.server,threading,urllib.request as u; s=http.server.HTTPServer((\"127.0.0.1\",0),http.server.SimpleHTTPRequestHandler); threading.Thread(target=s.serve_forever,daemon=True).start(); print(u.urlopen(\"http://127.0.0.1:%d/\"%s.server_port).status)' 2>/dev/null", stdout: "200\n", socket: true},
	{name: "python pty", script: "python3 -c 'import pty,os; a,b=pty.openpty(); print(os.isatty(b))'", stdout: "True\n", socket: true},
	{name: "python venv", script: "python3 -m venv --without-pip v && v/bin/python -c 'print(2)'", stdout: "2\n"},
	{name: "python zip", script: "echo a > f && python3 -m zipfile -c z.zip f && python3 -m zipfile -l z.zip | wc -l", stdout: "2\n"},
	{name: "make", script: "printf 'all: a b\\n\\tcat a b\\na b:\\n\\techo $@ > $@\\n' > Makefile && make -s -j2 2>&1", stdout: "a\nb\n"},
	{name: "gcc", script: "echo 'int main(void){return 3;}' > a.c && gcc -o a a.c && ./a; echo $?", stdout: "3\n"},
	{name: "g++", script: "printf '#include <iostream>\\nint main(){std::cout<<4<<std::endl;}' > a.cc && g++ -o a a.cc && ./a", stdout: "4\n"},
	{name: "tar", script: "mkdir d && echo 1 > d/a && tar czf t.tgz d && rm -r d && tar xzf t.tgz && cat d/a", stdout: "1\n"},
	{name: "tar keeps times and modes", script: "echo 1 > a && chmod 750 a && touch -d @100 a && tar cf t a && rm a && tar xpf t && stat -c '%a %Y' a", stdout: "750 100\n"},
	{name: "cp -a", script: "mkdir d && echo 1 > d/a && ln -s a d/l && cp -a d e && cat e/l", stdout: "1\n"},
	{name: "mv over", script: "echo 1 > a && echo 2 > b && mv a b && cat b", stdout: "1\n"},
	{name: "hard links", script: "echo 1 > a && ln a b && stat -c %h a", stdout: "2\n"},
	{name: "find", script: "mkdir -p a/b && touch a/b/c.txt && find . -name '*.txt' -type f", stdout: "./a/b/c.txt\n"},
	{name: "find -exec", script: "touch a.x b.x && find . -name '*.x' -exec rm {} + && ls | wc -l", stdout: "0\n"},
	{name: "xargs", script: "seq 3 | xargs -n1 echo x", stdout: "x 1\nx 2\nx 3\n"},
	{name: "xargs in parallel", script: "seq 8 | xargs -P4 -n1 sh -c 'echo $0 > $0' && ls | wc -l", stdout: "8\n"},
	{name: "sed -i", script: "echo a > f && sed -i s/a/b/ f && cat f", stdout: "b\n"},
	{name: "awk", script: "printf '1 2\\n3 4\\n' | awk '{s+=$2} END{print s}'", stdout: "6\n"},
	{name: "grep -r", script: "mkdir d && echo needle > d/f && grep -rl needle .", stdout: "./d/f\n"},
	{name: "sort", script: "seq 1000 | sort -rn | head -1", stdout: "1000\n"},
	{name: "diff and patch", script: "echo 1 > a; echo 2 > b; diff -u a b > p; patch -s a p && cat a", stdout: "2\n"},
	{name: "jq", script: "echo '{\"a\":[1,2]}' | jq -c .a", stdout: "[1,2]\n"},
	{name: "tee", script: "echo x | tee a b > /dev/null; cat a b", stdout: "x\nx\n"},
	{name: "perl", script: "perl -MFile::Temp -e 'print 1+1, \"\\n\"'", stdout: "2\n"},
	{name: "node", script: "node -e 'console.log([1,2].map(x=>x*2).join())'", stdout: "2,4\n"},
	{name: "node files", script: "node -e 'const fs=require(\"fs\"); fs.writeFileSync(\"a\",\"x\"); fs.promises.readFile(\"a\").then(b=>console.log(b+\"\"))'", stdout: "x\n"},
	{name: "node workers", script: "node -e 'const {Worker}=require(\"worker_threads\"); new Worker(\"require(\\\"worker_threads\\\").parentPort.postMessage(5)\",{eval:true}).on(\"message\",m=>console.log(m))'", stdout: "5\n"},
	{name: "node watches", script: "node -e 'const fs=require(\"fs\"); const w=fs.watch(\".\",()=>{console.log(\"seen\");w.close();process.exit()}); setTimeout(()=>fs.writeFileSync(\"a\",\"x\"),50)'", stdout: "seen\n"},
	{name: "node http", script: "node -e 'const h=require(\"http\"); const s=h.createServer((q,r)=>r.end(\"hi\")).listen(0,\"127.0.0.1\",()=>h.get({port:s.address().port},r=>r.on(\"data\",d=>{console.log(d+\"\");process.exit()})))'", stdout: "hi\n", socket: true},
	{name: "sqlite3", script: "sqlite3 a.db 'create table t(a); insert into t values(3); select * from t'", stdout: "3\n"},
	{name: "gzip", script: "echo x > a && gzip a && gunzip -c a.gz", stdout: "x\n"},
	{name: "xz", script: "echo x > a && xz a && xz -dc a.xz", stdout: "x\n"},
	{name: "sha256sum", script: "echo x > a && sha256sum a > s && sha256sum -c s", stdout: "a: OK\n"},
	{name: "date", script: "TZ=UTC date -d @0 +%Y", stdout: "1970\n"},
	{name: "bash", script: "bash -c 'a=(1 2 3); echo ${a[1]}; cat <(echo sub)'", stdout: "2\nsub\n"},
	{name: "jobs of the shell", script: "(sleep 0.1; echo b) & echo a; wait; echo c", stdout: "a\nb\nc\n"},
	{name: "fifo", script: "mkfifo p; (echo x > p) & cat p", stdout: "x\n"},
	{name: "flock", script: "flock l echo locked", stdout: "locked\n"},
	{name: "timeout", script: "timeout 0.1 sleep 5; echo $?", stdout: "124\n"},
	{name: "ps", script: "ps -e | grep -c sh", stdout: "1\n", socket: true},
	{name: "nproc", script: "test $(nproc) -ge 1 && echo yes", stdout: "yes\n"},
	{name: "java", script: "printf 'class A{public static void main(String[] a){System.out.println(6);}}' > A.java && java A.java", stdout: "6\n"},
	{name: "whoami and id", script: "test $(id -u) = $(stat -c %u .) && echo same", stdout: "same\n"},
}

// Everyday jobs work in tier N, all of them, and in tier L those that need no socket.
func TestEverydayJobs(t *testing.T) {
	eachTier(t, func(t *testing.T, runner *sandbox.Local) {
		namespaces := runner.Describe(t.Context()).Tier == sandbox.TierNamespaces
		made := 0
		for _, j := range everydayJobs {
			program, _, _ := strings.Cut(j.name, " ")
			if _, err := exec.LookPath("/usr/bin/" + program); err != nil && (program == "gcc" || program == "g++" || program == "node" || program == "java" || program == "sqlite3" || program == "jq" || program == "git" || program == "xz" || program == "make") || j.socket && !namespaces {
				continue
			}
			made++
			t.Run(j.name, func(t *testing.T) { MustBox(t, runner, 0).want(j.script, j.stdout) })
		}
		t.Logf("%d of %d jobs were done", made, len(everydayJobs))
	})
}

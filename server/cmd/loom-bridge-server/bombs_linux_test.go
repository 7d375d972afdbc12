package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// bombs are scripts that take what they can, and what may end them: a limit, or an error
// that the script gets.
var bombs = map[string]struct {
	script string
	ends   []string
	only   string // the tier that has this limit; empty for both
}{
	"forks":        {script: "import os,time\nend=time.time()+2\nwhile time.time()<end:\n try: os.fork()\n except OSError: time.sleep(.01)\nos.write(2,b'held')\nos._exit(3)", ends: []string{"processes", "held"}},
	"one process":  {script: "b=[]\nwhile True: b.append(bytearray(16<<20))", ends: []string{"memory", "MemoryError"}},
	"many of them": {script: "import os,time\nfor i in range(3): os.fork()\nb=bytearray(os.urandom(1<<20))*60\ntime.sleep(600)", ends: []string{"memory"}},
	"memory files": {script: "import os\nf=os.memfd_create('x')\nwhile True: os.write(f,b'x'*(1<<20))", ends: []string{"memory", "File too large"}},
	"one file":     {script: "f=open('big','wb')\nwhile True: f.write(b'x'*(1<<20))", ends: []string{"File too large"}},
	"temporary":    {script: "f=open('/tmp/big','wb')\nwhile True: f.write(b'x'*(1<<20)); f.flush()", ends: []string{"memory", "File too large", "No space left"}, only: "namespaces"},
	"processor":    {script: "while True: pass", ends: []string{"cpu"}},
	"output":       {script: "while True: print('x'*(1<<16))", ends: []string{"output"}},
	"descriptors":  {script: "import os\nwhile True: os.dup(0)", ends: []string{"Too many open files"}},
	"survivors":    {script: "import os,time\nfor i in range(8):\n if os.fork()==0:\n  os.setsid()\n  if os.fork()==0: time.sleep(600)\n  os._exit(0)\nos.write(2,b'left')\nos._exit(3)", ends: []string{"left"}},
}

// Bombs that ten agents set off at once end at the limits of the profile. The server
// answers, and none of their processes is left.
//
// E05
func TestBombsOnAServerSoak(t *testing.T) {
	settings := "[profile.work]\nlimits = { cpu = \"1s\", memory = \"256MiB\", processes = 64, file = \"64MiB\", scratch = \"64MiB\", open_files = 256, output = \"1MiB\" }\n"
	eachPolicyTier(t, settings, func(t *testing.T, w *policyWorld) {
		mark := "bomb of " + filepath.Base(w.outside) + " " + w.tier
		var work sync.WaitGroup
		for name, bomb := range bombs {
			if bomb.only != "" && bomb.only != w.tier {
				continue
			}
			work.Go(func() {
				got := w.callAs(name, "s1", "system:shell", object{"command": "python3", "args": []string{"-c", bomb.script, mark}})
				var p printed
				if got.GetSuccess() {
					must(t, json.Unmarshal([]byte(got.GetOutputJson()), &p))
				}
				said := p.Limit + " " + got.GetErrorMessage()
				if !slices.ContainsFunc(bomb.ends, func(end string) bool { return strings.Contains(said, end) }) {
					t.Errorf("%s ended with %q: %.600v", name, said, got)
				}
			})
		}
		work.Wait()
		if got := w.callAs("calm", "s1", "fs:list_dir", object{}); !got.GetSuccess() {
			t.Errorf("the server answers %v", got)
		}
		eventually(t, waitTime, func() error {
			all, err := filepath.Glob("/proc/[0-9]*/cmdline")
			must(t, err)
			for _, file := range all {
				if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), mark) {
					return fmt.Errorf("%s is still there", file)
				}
			}
			return nil
		})
	})
}

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
	"github.com/loom-bridge/loom-bridge/internal/testkit/attack"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// answerTime is within what a server answers after an attack, whatever else the machine does.
	answerTime = 30 * time.Second
	// settleTime bounds the wait until a server has closed what a run left open, stillTime is
	// how long nothing changes then.
	settleTime = time.Minute
	stillTime  = 500 * time.Millisecond
)

// Attacks that tools make on the server that started them: what is not stopped is what the
// tier is known for, and after each the server answers, has the data that it had, no process
// and no descriptor more, and no temporary file. Each attack is made without the sandbox
// first. Some of them are made always, a few by each call; all of them, one by each call and as
// two users, in `make soak`.
func TestAttacksOnAServerSoak(t *testing.T) {
	t.Parallel()
	names, users, each := attack.Sample(), []int{0}, 5
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		names, each = attack.Names(), 1
		if os.Geteuid() == 0 {
			users = append(users, 1234)
		}
	}
	for _, user := range users {
		open := mustBeUnderAttack(t, user, "--sandbox=off")
		works, refused := open.attack(names...)
		t.Logf("user %d: %d attacks, of which %d reach without the sandbox; the machine refuses %v",
			user, len(names), len(works), slices.Sorted(maps.Keys(refused)))
		if len(works) < len(names)/2 {
			t.Fatalf("only %v reach without the sandbox: %v", works, refused)
		}
		for _, tier := range []string{"namespaces", "landlock"} {
			t.Run(fmt.Sprint(tier, " user ", user), func(t *testing.T) {
				u := mustBeUnderAttack(t, user, "--sandbox-tier="+tier)
				if s := u.status().GetSandbox(); s.GetTier() != tier {
					lacks(t, tier, s.GetProblems())
				}
				u.scene.AimAt(u.server, u.port, u.file)
				u.withstand(slices.Collect(slices.Chunk(names, each)), attack.Unstopped(tier == "namespaces"))
			})
		}
	}
}

// underAttack is a server in a process of its own, what it keeps, and a world around it.
type underAttack struct {
	*shellWorld
	scene  *attack.Scene
	server int    // its process
	port   int    // its own
	store  string // its folder
	file   string // one of the store
	temp   string // where it has temporary files
	blob   string // a step whose result is stored
	held   string // that result
}

// mustBeUnderAttack starts a server whose workspace is a user's; 0 is the user of the test.
func mustBeUnderAttack(t *testing.T, user int, args ...string) *underAttack {
	t.Helper()
	top := t.TempDir()
	must(t, os.Chmod(filepath.Dir(top), 0o755))
	u := &underAttack{store: filepath.Join(top, "store"), temp: filepath.Join(top, "temp")}
	work := filepath.Join(top, "work")
	for _, dir := range []string{u.temp, filepath.Join(work, "kept")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	for i := range 8 {
		must(t, os.WriteFile(filepath.Join(work, "kept", fmt.Sprint(i)), []byte(strings.Repeat(fmt.Sprint(i), 999)), 0o644))
	}
	u.scene = attack.MustScene(t, work, user)
	c := MustStartChildIn(t, []string{"TMPDIR=" + u.temp}, top, append([]string{"--workspace=" + work, "--data-dir=" + u.store}, args...)...)
	u.server = c.Process.Pid
	u.shellWorld = &shellWorld{t, &process{conn: MustDial(t, c.Address), Workspace: work, Address: c.Address}, ""}
	_, port, err := net.SplitHostPort(c.Address)
	must(t, err)
	u.port, err = strconv.Atoi(port)
	must(t, err)
	logs, err := filepath.Glob(filepath.Join(u.store, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("the store has no log: %v", err)
	}
	u.file = logs[0]
	save(t, u.process, "Bitcoin closed at 45,000")
	u.blob = u.record("shell:run", object{"stdout": strings.Repeat("a line that is stored\n", 20_000)}).GetId()
	if u.held = u.MustRead(t, u.blob); len(u.held) < 400_000 {
		t.Fatalf("%d bytes are stored", len(u.held))
	}
	return u
}

// record records a step whose result is stored.
func (u *underAttack) record(tool string, output object) *loombridgev1.Step {
	u.tb.Helper()
	text, err := json.Marshal(output)
	must(u.tb, err)
	got, err := u.context().RecordStep(u.tb.Context(), &loombridgev1.RecordStepRequest{
		AgentId: "a", ToolName: tool, OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(text)},
	})
	must(u.tb, err)
	return got.GetStep()
}

// attack makes attacks by one call.
func (u *underAttack) attack(names ...string) (reached []string, stopped map[string]string) {
	u.tb.Helper()
	got, failure := u.run("system:shell", object{"command": "env", "args": u.scene.Command(names...)})
	if failure != nil || got.ExitCode == nil || *got.ExitCode != 0 {
		u.tb.Fatalf("%v ended with %+v, %v", names, got, failure)
	}
	reached, stopped = attack.Read(got.Stdout)
	if len(reached)+len(stopped) != len(names) {
		u.tb.Fatalf("of %v was made %v, %v", names, reached, stopped)
	}
	return reached, stopped
}

// withstand makes attacks, some by each call, and looks at the server after each call.
func (u *underAttack) withstand(calls [][]string, known []string) {
	u.tb.Helper()
	// What the first calls open for all that follow, and the stages that wait for a job.
	for range 10 {
		u.run("system:shell", object{"command": "env"})
		if u.settled().Processes[inner.SecondStage] > 0 {
			break
		}
	}
	var calm []time.Duration
	for range 20 {
		calm = append(calm, u.answers())
	}
	before := u.settled()
	before.Protected = treeOf(u.tb, u.Workspace, sandbox.Protected())
	var unstopped []string
	var times []time.Duration
	for _, names := range calls {
		reached, _ := u.attack(names...)
		times = append(times, u.answers())
		for _, name := range reached {
			if unstopped = append(unstopped, name); !slices.Contains(known, name) {
				u.tb.Errorf("%s reached", name)
			}
		}
		u.wantSame(strings.Join(names, ", "), before)
		if u.tb.Failed() {
			return
		}
	}
	u.scene.WantWhole()
	p50, p99 := atParts(times)
	_, calm99 := atParts(calm)
	u.tb.Logf("%d calls with attacks, not stopped %v; the next answer after p50 %v, p99 %v; without attacks p99 %v", len(calls), unstopped, p50, p99, calm99)
	if last := slices.Max(times); last > answerTime {
		u.tb.Errorf("an answer after an attack took %v", last)
	}
}

// atParts are the middle of some times and what one in a hundred exceeds.
func atParts(times []time.Duration) (p50, p99 time.Duration) {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2], sorted[(len(sorted)*99-1)/100]
}

// answers is how long a query takes, which finds what was saved.
func (u *underAttack) answers() time.Duration {
	u.tb.Helper()
	start := time.Now()
	if n := hits(u.tb, u.process, "bitcoin"); n != 1 {
		u.tb.Errorf("%d records are found", n)
	}
	return time.Since(start)
}

// sight is what can be seen of a server from outside.
type sight struct {
	Descriptors map[string]int // by what they are; those of the store aside, which RocksDB opens and closes
	Processes   map[string]int // by the names that they were started by
	Temporary   []string
	Protected   map[string]string
}

func (u *underAttack) look() sight {
	u.tb.Helper()
	s := sight{Descriptors: map[string]int{}, Processes: u.processes()}
	place := fmt.Sprintf("/proc/%d/fd", u.server)
	list, err := os.ReadDir(place)
	must(u.tb, err)
	for _, e := range list {
		to, err := os.Readlink(filepath.Join(place, e.Name()))
		if err != nil || strings.HasPrefix(to, u.store) {
			continue
		}
		if kind, _, ok := strings.Cut(to, ":["); ok {
			to = kind
		}
		s.Descriptors[to]++
	}
	s.Temporary, err = filepath.Glob(filepath.Join(u.temp, "*", "*"))
	must(u.tb, err)
	return s
}

// settled is what is seen when nothing changes any more.
func (u *underAttack) settled() sight {
	u.tb.Helper()
	last, since := u.look(), time.Now()
	for end := time.Now().Add(settleTime); time.Now().Before(end) && time.Since(since) < stillTime; time.Sleep(20 * time.Millisecond) {
		if now := u.look(); !maps.Equal(now.Processes, last.Processes) || !maps.Equal(now.Descriptors, last.Descriptors) {
			last, since = now, time.Now()
		}
	}
	return last
}

// processes are those that the server has started, stages that wait for a job among them, and
// others that work where it does.
func (u *underAttack) processes() map[string]int {
	u.tb.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	must(u.tb, err)
	parents, names, found := map[int]int{}, map[int]string{}, map[int]bool{}
	for _, place := range all {
		pid, err := strconv.Atoi(filepath.Base(place))
		must(u.tb, err)
		stat, _ := os.ReadFile(place + "/stat") // it may have ended
		if _, rest, ok := strings.Cut(string(stat), ") "); ok {
			parents[pid], _ = strconv.Atoi(strings.Fields(rest)[1])
		}
		command, _ := os.ReadFile(place + "/cmdline")
		names[pid], _, _ = strings.Cut(string(command), "\x00")
		cwd, _ := os.Readlink(place + "/cwd")
		if pid != u.server && (strings.Contains(string(command), u.Workspace) || strings.HasPrefix(cwd, u.Workspace)) {
			found[pid] = true
		}
	}
	for pid := range parents {
		for above := parents[pid]; above > 0; above = parents[above] {
			if above == u.server {
				found[pid] = true
				break
			}
		}
	}
	count := map[string]int{}
	for pid := range found {
		count[names[pid]]++
	}
	return count
}

// wantSame fails the test unless the server has what it had.
func (u *underAttack) wantSame(after string, before sight) {
	u.tb.Helper()
	var now sight
	same := func() bool {
		now = u.look()
		return maps.Equal(now.Descriptors, before.Descriptors) && maps.Equal(now.Processes, before.Processes) && slices.Equal(now.Temporary, before.Temporary)
	}
	for end := time.Now().Add(settleTime); !same(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			u.tb.Errorf("after %s there are %+v, before %+v", after, now, before)
			return
		}
	}
	if got := u.MustRead(u.tb, u.blob); got != u.held {
		u.tb.Errorf("after %s a stored result has %d bytes", after, len(got))
	}
	if tree := treeOf(u.tb, u.Workspace, sandbox.Protected()); !maps.Equal(tree, before.Protected) {
		u.tb.Errorf("after %s protected paths are %v, before %v", after, tree, before.Protected)
	}
	for i := range 8 {
		text, err := os.ReadFile(filepath.Join(u.Workspace, "kept", fmt.Sprint(i)))
		if err != nil || string(text) != strings.Repeat(fmt.Sprint(i), 999) {
			u.tb.Errorf("after %s a file of the workspace is %.20q, %v", after, text, err)
		}
	}
}

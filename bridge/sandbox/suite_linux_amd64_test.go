package sandbox_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
)

// What this test binary is when it is started as something else.
const (
	asAttacker = "LOOM_TEST_ATTACKER" // the world it attacks
	asVictim   = "LOOM_TEST_VICTIM"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asAttacker) != "":
		os.Exit(attackWorld())
	case os.Getenv(asVictim) != "":
		fmt.Println("ready")
		time.Sleep(time.Minute)
		return
	}
	os.Exit(m.Run())
}

func allAttacks() map[string]attack {
	all := map[string]attack{}
	for _, some := range []map[string]attack{fileAttacks, processAttacks, kernelAttacks, networkAttacks} {
		maps.Copy(all, some)
	}
	return all
}

// attackWorld is the attacker. Without an argument it makes each attack in a process of
// its own and prints what came of it; with one it makes that one.
func attackWorld() int {
	var w world
	if err := json.Unmarshal([]byte(os.Getenv(asAttacker)), &w); err != nil {
		panic(err)
	}
	if len(os.Args) > 1 {
		if err := allAttacks()[os.Args[1]](w); err != nil {
			fmt.Print(err)
			return 1
		}
		return 0
	}
	if w.FirstStage = os.Getppid(); os.Getpid() < 100 {
		w.FirstStage = 1
	}
	told, _ := json.Marshal(w) // numbers and names
	for _, name := range slices.Sorted(maps.Keys(allAttacks())) {
		cmd := exec.Command("/proc/self/exe", name)
		cmd.Path, cmd.Dir = filepath.Join(w.Work, "attacker"), w.Work
		cmd.Env = []string{asAttacker + "=" + string(told)}
		out, err := cmd.CombinedOutput()
		first, _, _ := strings.Cut(string(out), "\n")
		if err == nil {
			first = "REACHED"
		}
		fmt.Printf("%s\t%s\t%v\n", name, first, err)
	}
	return 0
}

// battle is a world, what is in it, and what happened.
type battle struct {
	*box
	world   world
	victims []*exec.Cmd
}

// MustBattle makes a world that a user could attack.
func MustBattle(tb testing.TB, runner *sandbox.Local, user int) *battle {
	tb.Helper()
	b := &battle{box: MustBox(tb, runner, user)}
	w := &b.world
	w.Work, w.Outside, w.Other = b.dir, filepath.Join(b.top, "outside"), filepath.Join(b.top, "other")
	for _, dir := range []string{w.Outside, w.Other, filepath.Join(w.Work, ".git/hooks")} {
		must(tb, os.MkdirAll(dir, 0o755))
	}
	for _, name := range []string{"secret", "trunc", "unlink", "hard", "meta", "program"} {
		b.put("../outside/"+name, "kept from tools")
	}
	must(tb, os.Chmod(w.out("program"), 0o755))
	b.put("../other/secret", "kept from tools")
	b.put(".env", "KEY=1")
	b.put(".git/config", "[core]\n")
	w.Shm = filepath.Join("/dev/shm", fmt.Sprint("loom-test-", os.Getpid()))
	must(tb, os.WriteFile(w.Shm, []byte("kept"), 0o644))
	tb.Cleanup(func() { _ = os.Remove(w.Shm) })
	self, err := os.ReadFile("/proc/self/exe")
	must(tb, err)
	must(tb, os.WriteFile(w.work("attacker"), self, 0o755))
	b.listen()
	if id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666); err == nil {
		w.SysV = id
		tb.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	}
	if n, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, text(w.Abstract), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o666, 0, 0, 0); e == 0 {
		_ = unix.Close(int(n))
		tb.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, text(w.Abstract), 0, 0) })
	}
	if user > 0 {
		for _, dir := range []string{w.Outside, w.Other, w.Work} {
			must(tb, filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
				if err != nil {
					return err
				}
				return os.Lchown(path, user, user)
			}))
		}
		must(tb, os.Chown(w.Shm, user, user))
	}
	w.Victim, w.Mortal = b.victim(user), b.victim(user)
	return b
}

// listen opens all sockets. They are kept: one that nobody refers to is closed.
func (b *battle) listen() {
	b.tb.Helper()
	w := &b.world
	w.Abstract = fmt.Sprint("loom-test-", os.Getpid(), "-", time.Now().UnixNano())
	tcp := func(network, address string) int {
		l, err := net.Listen(network, address)
		must(b.tb, err)
		b.tb.Cleanup(func() { _ = l.Close() })
		return l.Addr().(*net.TCPAddr).Port
	}
	w.Server, w.Port = tcp("tcp4", "127.0.0.1:0"), tcp("tcp4", "127.0.0.2:0")
	for _, address := range []string{w.out("socket"), w.work("socket"), "@" + w.Abstract} {
		l, err := net.Listen("unix", address)
		must(b.tb, err)
		b.tb.Cleanup(func() { _ = l.Close() })
		if address[0] != '@' {
			must(b.tb, os.Chmod(address, 0o777))
		}
	}
	datagrams, err := net.ListenPacket("unixgram", w.out("datagrams"))
	must(b.tb, err)
	must(b.tb, os.Chmod(w.out("datagrams"), 0o777))
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(b.tb, err)
	b.tb.Cleanup(func() { _, _ = datagrams.Close(), udp.Close() })
	w.UDP = udp.LocalAddr().(*net.UDPAddr).Port
	go func() {
		buffer := make([]byte, 16)
		for {
			n, from, err := udp.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(buffer[:n], from)
		}
	}()
}

// victim starts a process of a user outside.
func (b *battle) victim(user int) int {
	b.tb.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Dir = []string{asVictim + "=1", "SECRET=kept"}, b.world.Outside
	if user > 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	}
	out, err := cmd.StdoutPipe()
	must(b.tb, err)
	must(b.tb, cmd.Start())
	b.tb.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	_, err = bufio.NewReader(out).ReadString('\n')
	must(b.tb, err)
	b.victims = append(b.victims, cmd)
	return cmd.Process.Pid
}

// fight makes all attacks and returns those that reached, and what stopped the others.
func (b *battle) fight() (reached []string, stopped map[string]string) {
	b.tb.Helper()
	told, err := json.Marshal(b.world)
	must(b.tb, err)
	got := b.run("/usr/bin/env", asAttacker+"="+string(told), "./attacker")
	if got.err != nil || got.Exit != 0 {
		b.tb.Fatalf("the attacker ended with %+v", got)
	}
	stopped = map[string]string{}
	for line := range strings.Lines(got.stdout) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(what, "REACHED") {
			reached = append(reached, name)
		} else {
			stopped[name] = what
		}
	}
	if len(reached)+len(stopped) != len(allAttacks()) {
		b.tb.Fatalf("%d attacks were made, of %d: %s", len(reached)+len(stopped), len(allAttacks()), got.stderr)
	}
	return reached, stopped
}

// wantWhole fails when anything outside was changed or a victim is gone.
func (b *battle) wantWhole() {
	b.tb.Helper()
	entries, err := os.ReadDir(b.world.Outside)
	must(b.tb, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"datagrams", "hard", "meta", "program", "secret", "socket", "trunc", "unlink"}; !slices.Equal(names, want) {
		b.tb.Errorf("outside there is %v", names)
	}
	for _, name := range []string{"hard", "meta", "secret", "trunc", "unlink"} {
		content, err := os.ReadFile(b.world.out(name))
		info, statErr := os.Stat(b.world.out(name))
		if err != nil || statErr != nil || string(content) != "kept from tools" || info.Mode() != 0o644 || info.ModTime().Unix() == 1 {
			b.tb.Errorf("%s was changed: %q, %v, %v", name, content, info, err)
		}
	}
	for _, v := range b.victims {
		if err := v.Process.Signal(unix.Signal(0)); err != nil {
			b.tb.Errorf("a process outside is gone: %v", err)
		}
		if strings.Contains(statusLine(v.Process.Pid), "Z") {
			b.tb.Error("a process outside was killed")
		}
	}
	if left := b.marked(); len(left) > 0 {
		b.tb.Errorf("processes of the attacker stay: %v", left)
	}
}

func statusLine(pid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") // gone is told elsewhere
	_, after, _ := strings.Cut(string(text), ") ")
	return after[:min(1, len(after))]
}

func (b *battle) marked() []string {
	out, _ := exec.Command("pgrep", "-f", b.world.work("attacker")).Output() // fails when there is none
	return strings.Fields(string(out))
}

// column is a way to be confined, and the attacks that it does not stop.
type column struct {
	name  string
	opts  sandbox.Options
	leaks []string
}

func columns() []column {
	// What tier L can't stop: THREATS.md says why.
	l := []string{"dotenv", "dotenv-replace", "gitconfig", "githook", "githook-rename", "stat-outside"}
	tier := func(name, tier string, abi int, leaks []string, without ...string) column {
		return column{name, sandbox.Options{Tier: tier, LandlockABI: abi, Without: without}, leaks}
	}
	return []column{
		tier("N", sandbox.TierNamespaces, 0, []string{"unix-in-ws"}),
		// The first stage is 1 there: nothing within can send it a deadly signal.
		tier("N without Landlock", sandbox.TierNamespaces, 0, []string{"unix-in-ws", "kill-helper", "tgkill-helper"}, inner.LayerLandlock),
		tier("L", sandbox.TierLandlock, 0, l),
		tier("L, ABI 5", sandbox.TierLandlock, 5, l),
		tier("L, ABI 3", sandbox.TierLandlock, 3, l),
		tier("L, ABI 1", sandbox.TierLandlock, 1, l),
	}
}

// Every attack that reaches its target without the sandbox is stopped in each tier, but
// for what the tier is known not to stop.
func TestAttacks(t *testing.T) {
	users := []int{0}
	if os.Geteuid() == 0 {
		users = []int{0, 1234}
	}
	for _, user := range users {
		t.Run(fmt.Sprint("user ", max(user, os.Geteuid())), func(t *testing.T) {
			open := MustBattle(t, newRunner(t, sandbox.Options{Setting: sandbox.Off}), user)
			works, refused := open.fight()
			t.Logf("%d of %d attacks reach without the sandbox; the machine refuses %v", len(works), len(allAttacks()), slices.Sorted(maps.Keys(refused)))
			if len(works) < 60 {
				t.Fatalf("only %d attacks reach without the sandbox: %v", len(works), refused)
			}
			for _, c := range columns() {
				t.Run(c.name, func(t *testing.T) {
					runner := newRunner(t, c.opts)
					if got := runner.Describe(t.Context()); !got.Confined() {
						t.Skipf("this machine does not have the tier: %v", got.Problems)
					}
					b := MustBattle(t, runner, user)
					reached, stopped := b.fight()
					for _, name := range reached {
						if !slices.Contains(c.leaks, name) {
							t.Errorf("%s reached", name)
						}
					}
					t.Logf("stopped %d, of which reach without: %d", len(stopped), len(works)-len(reached))
					b.wantWhole()
				})
			}
		})
	}
}

// The same as an ordinary user, whose server can't become anybody.
func TestAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the tests run as a user already")
	}
	const user = 4567
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		must(t, os.Chmod(d, 0o755))
	}
	home := filepath.Join(dir, "home")
	must(t, os.Mkdir(home, 0o700))
	must(t, os.Chown(home, user, user))
	self, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	program := filepath.Join(dir, "tests")
	must(t, os.WriteFile(program, self, 0o755))
	cmd := exec.CommandContext(t.Context(), program, "-test.run", "^(TestAttacks|TestRun|TestStopped|TestModes|TestProtected|TestHidden)$", "-test.v", "-test.timeout=3m")
	cmd.Env, cmd.Dir = append(os.Environ(), "TMPDIR="+home, "HOME="+home), home
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", lastLines(string(out), 40))
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

package attack

import (
	"bufio"
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
)

// content is what every file outside has.
const content = "kept from tools"

// Scene is a world that was made for a test, with what may come to harm in it.
type Scene struct {
	World
	tb      testing.TB
	victims []*exec.Cmd
	machine map[string]string // settings of the machine, as they were
}

// MustScene makes a world around a workspace that an attacker could reach who runs as a
// user; 0 is the user of the test. The workspace lies in a folder of the test's.
func MustScene(tb testing.TB, work string, user int) *Scene {
	tb.Helper()
	top := filepath.Dir(work)
	s := &Scene{tb: tb, World: World{Work: work, Outside: filepath.Join(top, "outside"), Other: filepath.Join(top, "other")}}
	for _, dir := range []string{s.Outside, s.Other, s.work(".git/hooks")} {
		must(tb, os.MkdirAll(dir, 0o755))
	}
	for _, name := range outsideFiles {
		must(tb, os.WriteFile(s.out(name), []byte(content), 0o644))
	}
	must(tb, os.Chmod(s.out("program"), 0o755))
	must(tb, os.WriteFile(filepath.Join(s.Other, "secret"), []byte(content), 0o644))
	must(tb, os.WriteFile(s.work(".env"), []byte("KEY=1"), 0o644))
	for _, name := range []string{".git", ".git/modules/m", "nested/.git"} {
		for _, folder := range []string{"info", "worktrees/m"} {
			must(tb, os.MkdirAll(s.work(name+"/"+folder), 0o755))
		}
		must(tb, os.WriteFile(s.work(name+"/config"), []byte("[core]\n"), 0o644))
	}
	must(tb, os.Mkdir(s.out("store"), 0o755))
	s.Store = s.out("store/log")
	must(tb, os.WriteFile(s.Store, []byte(content), 0o644))
	s.Shm = filepath.Join("/dev/shm", fmt.Sprint("loom-test-", os.Getpid(), "-", time.Now().UnixNano()))
	must(tb, os.WriteFile(s.Shm, []byte("kept"), 0o644))
	tb.Cleanup(func() { _ = os.Remove(s.Shm) })
	s.listen()
	s.share()
	s.programs(user)
	s.Victim, s.Mortal = s.victim(user), s.victim(user)
	s.machine = settings()
	return s
}

// outsideFiles are the files outside; sockets come to them.
var outsideFiles = []string{"hard", "meta", "program", "raced", "secret", "trunc", "unlink"}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// AimAt makes a server the target of attacks on processes, ports and stores: its process,
// its port of 127.0.0.1, a file of its store.
func (s *Scene) AimAt(process, port int, file string) {
	s.Victim, s.Mortal, s.Server, s.Store = process, process, port, file
}

// share makes what processes share by System V and POSIX names.
func (s *Scene) share() {
	if id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666); err == nil {
		s.SysV = id
		s.tb.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	}
	if n, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, text(s.Abstract), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o666, 0, 0, 0); e == 0 {
		_ = unix.Close(int(n))
		s.tb.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, text(s.Abstract), 0, 0) })
	}
}

// programs copies the attacker into the workspace, and gives everything to a user.
func (s *Scene) programs(user int) {
	s.tb.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	must(s.tb, err)
	for _, name := range []string{"attacker", "lends"} {
		must(s.tb, os.WriteFile(s.work(name), self, 0o755))
	}
	if user > 0 {
		for _, dir := range []string{s.Outside, s.Other, s.Work} {
			must(s.tb, filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
				if err != nil {
					return err
				}
				return os.Lchown(path, user, user)
			}))
		}
		must(s.tb, os.Chown(s.Shm, user, user))
	}
	if os.Geteuid() == 0 {
		// To a user it lends root's rights, to root another one's.
		owner := 0
		if user == 0 {
			owner = 4321
		}
		must(s.tb, os.Chown(s.work("lends"), owner, owner))
		must(s.tb, os.Chmod(s.work("lends"), 0o755|os.ModeSetuid))
	}
}

// listen opens all sockets. They are kept: an unreferenced one is closed.
func (s *Scene) listen() {
	s.tb.Helper()
	s.Abstract = fmt.Sprint("loom-test-", os.Getpid(), "-", time.Now().UnixNano())
	tcp := func(address string) int {
		l, err := net.Listen("tcp4", address)
		must(s.tb, err)
		s.tb.Cleanup(func() { _ = l.Close() })
		return l.Addr().(*net.TCPAddr).Port
	}
	s.Server, s.Port = tcp("127.0.0.1:0"), tcp("127.0.0.2:0")
	for _, address := range []string{s.out("socket"), s.work("socket"), "@" + s.Abstract} {
		l, err := net.Listen("unix", address)
		must(s.tb, err)
		s.tb.Cleanup(func() { _ = l.Close() })
		if address[0] != '@' {
			must(s.tb, os.Chmod(address, 0o777))
		}
	}
	datagrams, err := net.ListenPacket("unixgram", s.out("datagrams"))
	must(s.tb, err)
	must(s.tb, os.Chmod(s.out("datagrams"), 0o777))
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(s.tb, err)
	s.tb.Cleanup(func() { _, _ = datagrams.Close(), udp.Close() })
	s.UDP = udp.LocalAddr().(*net.UDPAddr).Port
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

// settings are some of the machine's that a tool must not change.
func settings() map[string]string {
	found := map[string]string{}
	for _, name := range []string{"pid_max", "hostname", "domainname", "core_pattern", "threads-max", "randomize_va_space"} {
		text, _ := os.ReadFile("/proc/sys/kernel/" + name) // what is not there stays so
		found[name] = string(text)
	}
	return found
}

// smallNumbers bounds the ids that processes of a process namespace have: an attacker that
// tries one of them would find its own process.
const smallNumbers = 600

// victim starts a process outside whose number no process inside can have.
func (s *Scene) victim(user int) int {
	for {
		cmd := s.start(user)
		if cmd.Process.Pid > smallNumbers {
			s.victims = append(s.victims, cmd)
			s.tb.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
			return cmd.Process.Pid
		}
		_, _ = cmd.Process.Kill(), cmd.Wait()
	}
}

// start starts a process of a user, which has a secret open as its fourth file.
func (s *Scene) start(user int) *exec.Cmd {
	s.tb.Helper()
	secret, err := os.Open(s.out("secret"))
	must(s.tb, err)
	defer secret.Close()
	cmd := exec.Command("/proc/self/exe", asVictim)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = []string{"SECRET=kept"}, s.Outside, []*os.File{secret}
	// A group of its own: a signal that reaches the group reaches no other test's process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if user > 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
	}
	out, err := cmd.StdoutPipe()
	must(s.tb, err)
	must(s.tb, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	must(s.tb, err)
	return cmd
}

// Command is the command line, inside, by which the attacker makes some attacks. Without
// names it makes all.
func (s *Scene) Command(names ...string) []string {
	return append([]string{"./attacker", asAttacker, s.encode()}, names...)
}

// Read reads what the attacker printed: the attacks that reached, and what stopped the
// others.
func Read(stdout string) (reached []string, stopped map[string]string) {
	stopped = map[string]string{}
	for line := range strings.Lines(stdout) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(what, "REACHED") {
			reached = append(reached, name)
		} else {
			stopped[name] = what
		}
	}
	return reached, stopped
}

// WantWhole fails the test when anything outside was changed, or a victim or a process of
// the attacker's is not where it should be.
func (s *Scene) WantWhole() {
	s.tb.Helper()
	entries, err := os.ReadDir(s.Outside)
	must(s.tb, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := slices.Sorted(slices.Values(append([]string{"datagrams", "socket", "store"}, outsideFiles...))); !slices.Equal(names, want) {
		s.tb.Errorf("outside there is %v", names)
	}
	for _, name := range outsideFiles {
		if name == "program" {
			continue // its mode is another
		}
		text, err := os.ReadFile(s.out(name))
		info, statErr := os.Stat(s.out(name))
		if err != nil || statErr != nil || string(text) != content || info.Mode() != 0o644 || info.ModTime().Unix() == 1 {
			s.tb.Errorf("%s was changed: %q, %v, %v", name, text, info, err)
		}
	}
	if now := settings(); !maps.Equal(now, s.machine) {
		s.tb.Errorf("settings of the machine were changed: %v, were %v", now, s.machine)
	}
	for _, v := range s.victims {
		if err := v.Process.Signal(unix.Signal(0)); err != nil {
			s.tb.Errorf("a process outside is gone: %v", err)
		}
		if strings.Contains(stateOf(v.Process.Pid), "Z") {
			s.tb.Error("a process outside was killed")
		}
	}
	if left := s.attackers(); len(left) > 0 {
		s.tb.Errorf("processes of the attacker stay: %v", left)
	}
}

func stateOf(pid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") // gone is reported elsewhere
	_, after, _ := strings.Cut(string(text), ") ")
	return after[:min(1, len(after))]
}

// attackers are the processes of the attacker that run.
func (s *Scene) attackers() []string {
	out, _ := exec.Command("pgrep", "-f", s.work("attacker")).Output() // fails when there is none
	return strings.Fields(string(out))
}

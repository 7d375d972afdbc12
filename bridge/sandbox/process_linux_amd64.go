package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
)

// process is a first stage, and what leads to it.
type process struct {
	stage   stage
	tier    string
	control *os.File
	mark    byte     // whether the base is made; 0: not known
	head    []byte   // read from control already
	stdin   *os.File // nil without input
	stdout  *os.File
	stderr  *os.File
	said    diagnostic // what the first stage itself complains of
	once    sync.Once
	ended   chan struct{}
}

// diagnostic keeps the first bytes written to it.
type diagnostic struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

func (d *diagnostic) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	const most = 2 << 10
	d.text = append(d.text, p[:min(len(p), most-len(d.text))]...)
	return len(p), nil
}

func (d *diagnostic) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.text)
}

// start starts a first stage, and sends it a base and what to do on top of it.
func (m *machine) start(spec inner.Spec, helper *os.File) (*process, error) {
	p, err := m.prepare(spec.Base(), helper)
	if err != nil {
		return nil, err
	}
	if err := p.begin(spec); err != nil {
		p.drop()
		return nil, err
	}
	return p, nil
}

// begin sends a stage its job.
func (p *process) begin(spec inner.Spec) error {
	if err := inner.WriteMessage(p.control, spec); err != nil {
		return fmt.Errorf("sandbox: start: %w", err)
	}
	if !spec.Input {
		_ = p.stdin.Close() // it has no reader
		p.stdin = nil
	}
	return nil
}

// drop ends a stage that has no job.
func (p *process) drop() {
	p.stage.kill()
	_ = p.stage.wait() // it was killed
	close(p.ended)
	p.close()
}

// prepare starts a first stage that makes what all jobs of a base have.
func (m *machine) prepare(base inner.Spec, helper *os.File) (_ *process, err error) {
	p := &process{tier: base.Tier, ended: make(chan struct{})}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close() // it is the child's now
		}
		if err != nil {
			p.close()
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	p.control = os.NewFile(uintptr(pair[0]), "control")
	theirs = append(theirs, os.NewFile(uintptr(pair[1]), "control"))
	in, mine, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	p.stdin, theirs = mine, append(theirs, in)
	for _, to := range []**os.File{&p.stdout, &p.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		*to, theirs = r, append(theirs, w)
	}
	attr := attributes(base)
	if attr.Cloneflags&unix.CLONE_NEWUSER != 0 {
		var s *launched
		if s, err = m.launch(attr, theirs, &p.said); err == nil {
			p.stage = s
		}
	} else {
		p.stage, err = startChild(attr, append(append([]*os.File{}, theirs...), helper), &p.said)
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: start: %w", err)
	}
	if err := inner.WriteMessage(p.control, base); err != nil {
		p.stage.kill() // it can do nothing without
		_ = p.stage.wait()
		return nil, fmt.Errorf("sandbox: start: %w", err)
	}
	return p, nil
}

// ready waits until the stage has made its base, and reports whether it has. Once known, it
// stays so.
func (p *process) ready() bool {
	if p.mark == 0 {
		mark := make([]byte, 1)
		if n, err := p.control.Read(mark); err != nil || n == 0 {
			return false // the report, or its absence, says why
		}
		p.mark = mark[0]
	}
	return p.mark == inner.ReadyMark
}

// stage is a first stage that runs.
type stage interface {
	kill()
	// wait waits for its end, once.
	wait() error
}

// child is a stage that this process has started.
type child struct{ *exec.Cmd }

func startChild(attr *syscall.SysProcAttr, files []*os.File, said io.Writer) (child, error) {
	c := child{&exec.Cmd{
		Path: inner.HelperPath, Args: []string{inner.FirstStage}, Env: []string{}, Dir: "/",
		Stderr: said, ExtraFiles: files, SysProcAttr: attr, WaitDelay: drainTime,
	}}
	return c, c.Start()
}

func (c child) kill()       { _ = c.Process.Kill() } // it may have ended
func (c child) wait() error { return c.Wait() }

// attributes say what the kernel makes for the first stage as it starts.
func attributes(spec inner.Spec) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	root := os.Geteuid() == 0
	if spec.Tier != inner.Namespaces {
		if root && spec.UID != 0 {
			a.Credential = &syscall.Credential{Uid: uint32(spec.UID), Gid: uint32(spec.GID)}
		}
		return a
	}
	for layer, flag := range map[string]uintptr{
		inner.LayerUser: unix.CLONE_NEWUSER, inner.LayerMount: unix.CLONE_NEWNS, inner.LayerPID: unix.CLONE_NEWPID,
		inner.LayerNet: unix.CLONE_NEWNET, inner.LayerIPC: unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	} {
		if spec.With(layer) {
			a.Cloneflags |= flag
		}
	}
	if !spec.With(inner.LayerUser) {
		return a
	}
	same := func(id int) syscall.SysProcIDMap { return syscall.SysProcIDMap{ContainerID: id, HostID: id, Size: 1} }
	a.UidMappings, a.GidMappings = []syscall.SysProcIDMap{same(spec.UID)}, []syscall.SysProcIDMap{same(spec.GID)}
	if !root {
		// Another user than 0 loses the rights in its namespace with execve.
		a.AmbientCaps = []uintptr{
			unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETPCAP,
			unix.CAP_NET_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SYS_ADMIN,
		}
		return a
	}
	// The stage stays 0, another user than the tool, which can't disturb it.
	a.GidMappingsEnableSetgroups = true
	if spec.UID != 0 {
		a.UidMappings = append(a.UidMappings, same(0))
	}
	if spec.GID != 0 {
		a.GidMappings = append(a.GidMappings, same(0))
	}
	return a
}

// feed writes the input of the program.
func (p *process) feed(from io.Reader) {
	_, _ = io.Copy(p.stdin, from) // a program may end before it has read everything
	_ = p.stdin.Close()
}

// cancel ends the run: the first stage kills everything when its server is gone.
func (p *process) cancel() {
	p.once.Do(func() {
		if p.tier == inner.Namespaces {
			p.stage.kill() // all in its namespace die with it
			return
		}
		if raw, err := p.control.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) }) // see the timer
		}
		time.AfterFunc(killTime, func() {
			select {
			case <-p.ended:
			default:
				p.stage.kill()
			}
		})
	})
}

// stopWith cancels the run when ctx or stop end, until the result is closed.
func (p *process) stopWith(ctx context.Context, stop <-chan struct{}) chan struct{} {
	over := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			p.cancel()
		case <-stop:
			p.cancel()
		case <-over:
		}
	}()
	return over
}

// wait returns what the first stage reports, once it has ended.
func (p *process) wait() (inner.Report, error) {
	var report inner.Report
	p.ready() // if it is not, the report says why
	heard := inner.ReadMessage(io.MultiReader(bytes.NewReader(p.head), p.control), &report)
	err := p.stage.wait()
	close(p.ended)
	if heard == nil {
		return report, nil
	}
	if text := p.said.String(); text != "" {
		return report, fmt.Errorf("sandbox: the first stage ended: %s", text)
	}
	return report, errors.Join(errors.New("sandbox: the first stage ended without a report"), err)
}

func (p *process) close() {
	for _, f := range []*os.File{p.control, p.stdin, p.stdout, p.stderr} {
		if f != nil {
			_ = f.Close() // read to its end, or it has no reader left
		}
	}
}

// FolderAt is which folder a place is; the zero Folder for none.
func FolderAt(place string) Folder {
	f := inner.Which(unix.AT_FDCWD, place)
	return Folder{f.Dev, f.Ino, f.Born}
}

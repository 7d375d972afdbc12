package sandbox

import (
	"encoding/json"
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

// orderTime bounds how long an order may take to reach the launcher, and a launcher to
// end.
const orderTime = 5 * time.Second

// launcher is the small process that starts first stages in user namespaces; see
// inner.Launcher. It is started when it is needed, and again when it is gone.
type launcher struct {
	mu     sync.Mutex
	cmd    *exec.Cmd // guarded by mu; nil without a process
	orders int       // guarded by mu; a socket
}

// begin starts the process. The caller holds mu.
func (l *launcher) begin(helper *os.File) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "orders")
	defer theirs.Close()
	bound := unix.NsecToTimeval(int64(orderTime))
	if err := unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &bound); err != nil {
		_ = unix.Close(pair[0]) // nothing was sent
		return err
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/fd/4", Args: []string{inner.Launcher}, Env: []string{}, Dir: "/",
		ExtraFiles: []*os.File{theirs, helper}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		_ = unix.Close(pair[0]) // nothing was sent
		return err
	}
	l.cmd, l.orders = cmd, pair[0]
	return nil
}

// end ends the process, if there is one. First stages that it has started go on.
func (l *launcher) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}

// drop is end for callers that hold mu.
func (l *launcher) drop() {
	if l.cmd == nil {
		return
	}
	_ = unix.Close(l.orders)                                               // it ends when the last orderer has ended
	slow := time.AfterFunc(orderTime, func() { _ = l.cmd.Process.Kill() }) // it may have ended
	_ = l.cmd.Wait()                                                       // however it ended
	slow.Stop()
	l.cmd = nil
}

// send sends an order. A launcher that is gone is started again, once.
func (l *launcher) send(helper *os.File, order, rights []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for again := false; ; again = true {
		if l.cmd == nil {
			if err := l.begin(helper); err != nil {
				return fmt.Errorf("launcher: %w", err)
			}
		}
		err := unix.Sendmsg(l.orders, order, rights, nil, unix.MSG_NOSIGNAL)
		if err == nil {
			return nil
		}
		l.drop()
		if again {
			return fmt.Errorf("launcher: %w", err)
		}
	}
}

// launched is a stage that the launcher has started.
type launched struct {
	mu      sync.Mutex
	process int // guarded by mu; a pidfd, -1 when it is over

	answers *os.File // end with the process
	said    *os.File // its stderr
	to      io.Writer
	heard   chan struct{} // closed when said has ended
}

// errGone: the launcher ended before it had carried out an order.
var errGone = errors.New("the launcher has ended")

// launch lets the launcher start a first stage, whose control and own three are files. An
// order that was lost with a launcher is given again, once.
func (m *machine) launch(attr *syscall.SysProcAttr, files []*os.File, said io.Writer) (*launched, error) {
	s, err := m.order(attr, files, said)
	if errors.Is(err, errGone) {
		return m.order(attr, files, said)
	}
	return s, err
}

func (m *machine) order(attr *syscall.SysProcAttr, files []*os.File, said io.Writer) (_ *launched, err error) {
	helper, err := m.helper()
	if err != nil {
		return nil, err
	}
	order, err := json.Marshal(inner.Order{Attributes: *attr})
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "answer")
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return nil, err
	}
	s := &launched{process: -1, answers: os.NewFile(uintptr(pair[0]), "answers"), to: said, heard: make(chan struct{})}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	reader, writer, err := os.Pipe()
	if err != nil {
		_ = theirs.Close() // it was not sent
		return nil, err
	}
	s.said = reader
	numbers := []int{int(theirs.Fd()), int(writer.Fd())}
	for _, f := range files {
		numbers = append(numbers, int(f.Fd()))
	}
	err = m.launcher.send(helper, order, unix.UnixRights(numbers...))
	_, _ = theirs.Close(), writer.Close() // they are the launcher's now
	if err != nil {
		return nil, err
	}
	if err := s.started(); err != nil {
		return nil, err
	}
	go s.hear()
	return s, nil
}

// started takes the answer to an order.
func (s *launched) started() error {
	text, rights := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(4))
	n, oob, err := receive(s.answers, text, rights)
	if err != nil {
		return err
	}
	var started inner.Started
	if n == 0 {
		return errGone
	}
	if err := json.Unmarshal(text[:n], &started); err != nil {
		return err
	}
	if started.Error != "" {
		return errors.New(started.Error)
	}
	if s.process, err = descriptor(rights[:oob]); err != nil {
		return err
	}
	return nil
}

// hear passes on what the stage itself complains of.
func (s *launched) hear() {
	defer close(s.heard)
	toEnd(s.said, func(p []byte) { _, _ = s.to.Write(p) }) // a buffer takes all
}

func (s *launched) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process >= 0 { // else its number may be that of another one
		_ = unix.PidfdSendSignal(s.process, unix.SIGKILL, nil, 0) // it may have ended
	}
}

// wait waits until the answers end. Where the launcher has ended before the stage, the
// stage is waited for by its descriptor.
func (s *launched) wait() error {
	_, _, err := receive(s.answers, make([]byte, 1), nil)
	for {
		_, e := unix.Poll([]unix.PollFd{{Fd: int32(s.process), Events: unix.POLLIN}}, -1)
		if !errors.Is(e, unix.EINTR) {
			break
		}
	}
	_ = s.said.SetReadDeadline(time.Now().Add(drainTime)) // pipes have them
	<-s.heard
	s.close()
	return err
}

func (s *launched) close() {
	for _, f := range []*os.File{s.answers, s.said} {
		if f != nil {
			_ = f.Close() // read to its end, or it has no reader left
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process >= 0 {
		_ = unix.Close(s.process)
		s.process = -1
	}
}

// receive takes a message, and what comes with it, from a socket that does not block.
func receive(from *os.File, text, rights []byte) (n, oob int, err error) {
	raw, err := from.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		n, oob, _, _, failed = unix.Recvmsg(int(fd), text, rights, unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	return n, oob, errors.Join(err, failed)
}

// descriptor is the one that came with a message.
func descriptor(rights []byte) (int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return -1, errors.New("no descriptor came")
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) == 0 {
		return -1, errors.New("no descriptor came")
	}
	return files[0], nil
}

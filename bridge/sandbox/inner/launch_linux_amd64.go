package inner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Launcher is the name under which a program starts first stages for a server. A process
// that makes a user namespace is a copy of the one that starts it, page tables and all:
// of a large server that takes longer than everything else, of the launcher nothing.
const Launcher = "loom-sandbox-0"

// Descriptors of the launcher.
const (
	fdOrders = 3
	fdItself = 4 // its program
)

// Order is the launcher's input for one start. It comes with the descriptors of the answer,
// of the first stage's own stderr, and of fdControl to fdStderr.
type Order struct {
	Attributes syscall.SysProcAttr `json:"attributes"`
}

// OrderFiles is how many descriptors come with an order.
const OrderFiles = 6

// Started is the answer to an order. A descriptor of the process comes with it; when the
// answers end, the process has ended.
type Started struct {
	Error string `json:"error,omitempty"`
}

// launcher starts first stages until its server is gone.
func launcher() int {
	unix.CloseOnExec(fdOrders)
	unix.CloseOnExec(fdItself)
	// Made once and kept: an unreferenced file is closed by the collector.
	itself := os.NewFile(fdItself, "launcher")
	defer itself.Close()
	text, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*OrderFiles))
	for {
		n, oob, _, _, err := unix.Recvmsg(fdOrders, text, rights, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return 0
		}
		files, err := received(rights[:oob])
		if err != nil || len(files) != OrderFiles {
			return 2 // only the server can send
		}
		var order Order
		err = json.Unmarshal(text[:n], &order)
		go order.carryOut(itself, files, err)
	}
}

// received are the descriptors of a message.
func received(rights []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return nil, errors.Join(err, errors.New("no descriptor came"))
	}
	return unix.ParseUnixRights(&messages[0])
}

// carryOut starts a first stage, reports it, and waits for its end.
func (o *Order) carryOut(itself *os.File, files []int, err error) {
	answer := os.NewFile(uintptr(files[0]), "answer")
	defer answer.Close()
	theirs := []*os.File{nil, nil}
	for _, n := range files[1:] {
		theirs = append(theirs, os.NewFile(uintptr(n), "stage"))
	}
	var process *os.Process
	if err == nil {
		process, err = os.StartProcess(HelperPath, []string{FirstStage}, &os.ProcAttr{
			Dir: "/", Env: []string{}, Files: append(theirs, itself), Sys: &o.Attributes,
		})
	}
	for _, f := range theirs[2:] {
		_ = f.Close() // it is the child's now
	}
	var started Started
	var rights []byte
	if err == nil {
		pid, openErr := unix.PidfdOpen(process.Pid, 0)
		if openErr == nil {
			defer unix.Close(pid)
			rights = unix.UnixRights(pid)
		} else {
			_ = process.Kill() // no other process could
			err = fmt.Errorf("pidfd: %w", openErr)
		}
	}
	if err != nil {
		started.Error = err.Error()
	}
	text, _ := json.Marshal(started) // it is a string
	_ = unix.Sendmsg(int(answer.Fd()), text, rights, nil, unix.MSG_NOSIGNAL)
	if process != nil {
		_, _ = process.Wait() // the server learns it when the answers end
	}
}

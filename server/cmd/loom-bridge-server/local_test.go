package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// companion is a server that a program started for itself.
type companion struct {
	*exec.Cmd
	in      io.Closer
	address string
}

// MustLocal starts `local` as a program does.
func MustLocal(tb testing.TB, runtime string, args ...string) companion {
	tb.Helper()
	command := exec.Command(os.Args[0], append([]string{"local", "--embedder", "off"}, args...)...)
	command.Env = append(os.Environ(), asServer+"=1", "XDG_RUNTIME_DIR="+runtime)
	var console bytes.Buffer
	command.Stderr = &console
	in, err := command.StdinPipe()
	must(tb, err)
	out, err := command.StdoutPipe()
	must(tb, err)
	must(tb, command.Start())
	tb.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	address, said := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !said {
		tb.Fatalf("%q, %v: %s", line, err, console.String())
	}
	return companion{command, in, address}
}

// remembers reports whether the server at an address finds a text.
func remembers(tb testing.TB, address, text string) error {
	tb.Helper()
	conn, err := dialPeer(address)
	must(tb, err)
	defer func() { _ = conn.Close() }()
	found, err := loombridgev1.NewBridgeServiceClient(conn).MemoryQuery(tb.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: text})
	if err == nil && len(found.GetHits()) == 0 {
		err = fmt.Errorf("%q is not found", text)
	}
	return err
}

// Programs and hosts on one directory share a server, which ends with the last of them.
//
// Y53
func TestLocal(t *testing.T) {
	t.Parallel()
	runtime, dir := t.TempDir(), t.TempDir()
	args := []string{"--data-dir", filepath.Join(dir, "store"), "--workspace", dir}
	first, second := MustLocal(t, runtime, args...), MustLocal(t, runtime, args...)
	if first.address != second.address {
		t.Errorf("two servers: %s, %s", first.address, second.address)
	}
	host, _ := MustShim(t, runtime, nil, append(args, "--agent", "a")...)
	host.works("memory_save", object{"text": "the host was here"}, nil)
	if err := remembers(t, first.address, "host"); err != nil {
		t.Error(err)
	}
	must(t, first.Process.Kill())
	eventually(t, waitTime, func() error { return remembers(t, second.address, "host") })
	must(t, host.Close())
	must(t, second.in.Close())
	must(t, second.Wait())
	if left, err := filepath.Glob(filepath.Join(runtime, "*", "*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A server that was started by hand is found by its data directory: by programs, by hosts, and
// on the command line.
//
// Y53
func TestServerIsFoundByItsDirectory(t *testing.T) {
	t.Parallel()
	runtime, dir := t.TempDir(), t.TempDir()
	store := filepath.Join(dir, ".loom", "store")
	command := exec.Command(os.Args[0], "--addr", "127.0.0.1:0", "--embedder", "off")
	command.Dir, command.Env = dir, append(os.Environ(), asServer+"=1", "XDG_RUNTIME_DIR="+runtime)
	out, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	host, _ := MustShim(t, runtime, nil, "--data-dir", store, "--workspace", dir, "--agent", "a")
	host.works("memory_save", object{"text": "the host was here"}, nil)
	if err := remembers(t, MustLocal(t, runtime, "--data-dir", store).address, "host"); err != nil {
		t.Error(err)
	}
	export := exec.Command(os.Args[0], "records", "export", "--agent", "a")
	export.Dir, export.Env = dir, command.Env
	if lines, err := export.CombinedOutput(); err != nil || !bytes.Contains(lines, []byte("the host was here")) {
		t.Errorf("records export: %v: %s", err, lines)
	}
}

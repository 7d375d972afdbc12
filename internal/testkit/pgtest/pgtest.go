// Package pgtest starts a PostgreSQL for tests: of the version in [Version], fetched once
// for a machine, on a free port and with its own empty folder.
//
// PostgreSQL refuses root, so for root the server runs as user nobody: a copy of the test's
// own program, selected by the environment variable childEnv, starts it. Tests that want
// one have
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
package pgtest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"
	"github.com/jackc/pgx/v5"
)

// Version is that of the server.
const Version = embedded.V18

const (
	childEnv = "LOOM_BRIDGE_PGTEST_DIR"
	// cacheEnv is where the unpacked program stays for the next time, by default the folder for
	// temporary files; for the process that starts the server it is the folder itself.
	cacheEnv = "LOOM_BRIDGE_PGTEST_CACHE"
	// programsEnv names the folder above bin of an installed server, such as
	// /usr/lib/postgresql/15. It replaces the fetched one.
	programsEnv = "LOOM_BRIDGE_PGTEST_PROGRAMS"
	// nobody is the user that the server runs as for root.
	nobody = 65534
	// startTimeout is for a slow machine that fetches the server first.
	startTimeout = 5 * time.Minute
)

// Server is a running server.
type Server struct {
	// Address is that of its database, as libpq takes it.
	Address string

	child *exec.Cmd
	stdin io.Closer
	dir   string
}

var (
	mu     sync.Mutex
	shared *Server
)

// Main runs the tests of a package and ends the server that they shared.
func Main(m *testing.M) {
	Become()
	code := m.Run()
	StopShared()
	os.Exit(code)
}

// Become is what a TestMain of another kind begins with: it runs a server where this process
// was started for that, and does not return then.
func Become() {
	dir := os.Getenv(childEnv)
	if dir == "" {
		return
	}
	if err := serve(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// StopShared ends the server that the tests of a package shared, if there is one.
func StopShared() {
	mu.Lock()
	defer mu.Unlock()
	if shared != nil {
		shared.Stop()
		shared = nil
	}
}

// Address returns that of the server which all tests of a package share.
func Address(tb testing.TB) string {
	tb.Helper()
	mu.Lock()
	defer mu.Unlock()
	if shared == nil {
		var err error
		if shared, err = Start(nil); err != nil {
			tb.Fatalf("start PostgreSQL: %v", err)
		}
	}
	return shared.Address
}

var schemas atomic.Int64

// Schema returns the name of a schema that is dropped when the test ends.
func Schema(tb testing.TB, address string) string {
	tb.Helper()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), schemas.Add(1))
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		conn, err := pgx.Connect(ctx, address)
		if err == nil {
			_, err = conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+name+" CASCADE")
			err = errors.Join(err, conn.Close(ctx))
		}
		if err != nil {
			tb.Errorf("drop schema %s: %v", name, err)
		}
	})
	return name
}

// Role returns an address of the same server for a new role, which may no more than make
// schemas.
func Role(tb testing.TB, address, name, password string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err == nil {
		_, err = conn.Exec(ctx, "SELECT pg_advisory_lock(1); CREATE ROLE "+name+" LOGIN PASSWORD '"+password+"'; GRANT CREATE ON DATABASE "+conn.Config().Database+" TO "+name)
		err = errors.Join(err, conn.Close(ctx))
	}
	place, failed := url.Parse(address)
	if err = errors.Join(err, failed); err != nil {
		tb.Fatalf("make the role %s: %v", name, err)
	}
	place.User = url.UserPassword(name, password)
	return place.String()
}

// Start starts a server with parameters of postgresql.conf in addition to the usual ones.
// Main must be what the program begins with.
func Start(parameters map[string]string) (*Server, error) {
	dir, err := os.MkdirTemp("", "loom-bridge-pgtest-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	if err := s.start(parameters); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Kill ends the postmaster with SIGKILL. The processes that it leaves behind end by
// themselves.
func (s *Server) Kill() error {
	text, err := os.ReadFile(filepath.Join(s.Folder(), "postmaster.pid"))
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// Restart starts a server again that was killed, as it was. It returns when it answers.
func (s *Server) Restart() error {
	text, err := os.ReadFile(filepath.Join(s.Folder(), "postmaster.opts"))
	if err != nil {
		return err
	}
	program, rest, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	var args []string
	for i, part := range strings.Split(rest, `"`) {
		if i%2 == 1 { // the others are what stands between two arguments
			args = append(args, part)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		again := exec.Command(program, args...)
		again.Dir, again.SysProcAttr = s.dir, s.child.SysProcAttr
		if err := again.Start(); err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- again.Wait() }()
		for answers := false; !answers; {
			select {
			case err = <-ended: // remains of the killed server are still there
				answers = true
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
				conn, err := pgx.Connect(ctx, s.Address)
				if err == nil {
					return conn.Close(ctx)
				}
			}
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

func (s *Server) start(parameters map[string]string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := filepath.Join(s.dir, "pgtest")
	if err := copyFile(program, self); err != nil { // the folder of the original may be root's alone
		return err
	}
	s.child = exec.Command(program)
	user := os.Getuid()
	if user == 0 {
		user = nobody
	}
	cache := filepath.Join(cmp.Or(os.Getenv(cacheEnv), os.TempDir()), fmt.Sprintf("loom-bridge-postgres-%s-%d", Version, user))
	// The library leaves logs in the folder for temporary files.
	s.child.Env = append(os.Environ(), childEnv+"="+s.dir, cacheEnv+"="+cache, "HOME="+s.dir, "TMPDIR="+s.dir)
	for name, value := range parameters {
		s.child.Env = append(s.child.Env, parameterEnv+name+"="+value)
	}
	if user == nobody {
		if err := os.Chown(s.dir, nobody, nobody); err != nil {
			return err
		}
		s.child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	s.child.Dir, s.child.Stderr = s.dir, os.Stderr
	stdin, err := s.child.StdinPipe()
	if err != nil {
		return err
	}
	s.stdin = stdin
	stdout, err := s.child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.child.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server did not start: %w", err)
	}
	s.Address = strings.TrimSpace(line)
	return nil
}

// Stop ends the server and removes what it wrote.
func (s *Server) Stop() {
	if s.stdin != nil {
		_ = s.stdin.Close() // the child ends with it
	}
	if s.child != nil && s.child.Process != nil {
		_ = s.child.Wait() // it has said what was wrong
	}
	_ = os.RemoveAll(s.dir)
}

// Folder is where the server keeps its data; postmaster.pid is in it.
func (s *Server) Folder() string { return filepath.Join(s.dir, "data") }

// copyFile copies a program. Nothing is forked meanwhile: a child that has the file open for
// writing until it begins its own program would keep this one from being started (ETXTBSY).
func copyFile(to, from string) (err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// parameterEnv is the beginning of variables that hold parameters of the server.
const parameterEnv = "LOOM_BRIDGE_PGTEST_SET_"

// serve runs a server in dir until standard input ends.
func serve(dir string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	cache := os.Getenv(cacheEnv)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	parameters := map[string]string{"max_connections": "400", "listen_addresses": "127.0.0.1", "unix_socket_directories": dir, "fsync": "off"}
	for _, variable := range os.Environ() {
		if rest, ok := strings.CutPrefix(variable, parameterEnv); ok {
			name, value, _ := strings.Cut(rest, "=")
			parameters[name] = value
		}
	}
	config := embedded.DefaultConfig().Version(Version).Port(port).Locale("C").Encoding("UTF8").
		RuntimePath(filepath.Join(dir, "run")).DataPath(filepath.Join(dir, "data")).
		CachePath(cache).BinariesPath(filepath.Join(cache, "bin")).
		StartParameters(parameters).StartTimeout(startTimeout).Logger(io.Discard)
	begin := startOnce
	if programs := os.Getenv(programsEnv); programs != "" {
		config = config.BinariesPath(programs)
		begin = func(server *embedded.EmbeddedPostgres, _ string) error { return server.Start() }
	}
	server := embedded.NewDatabase(config)
	if err := begin(server, cache); err != nil {
		return err
	}
	fmt.Println(config.GetConnectionURL() + "?sslmode=disable")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the starting process ends this one, or has ended
	return server.Stop()
}

// startOnce starts a server while no other process unpacks the program.
func startOnce(server *embedded.EmbeddedPostgres, cache string) error {
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	whole := filepath.Join(cache, "whole")
	if _, err := os.Stat(whole); err != nil { // what was cut off is unpacked anew
		if err := os.RemoveAll(filepath.Join(cache, "bin")); err != nil {
			return err
		}
	}
	if err := server.Start(); err != nil {
		return err
	}
	return os.WriteFile(whole, nil, 0o600)
}

func freePort() (uint32, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	_, text, _ := net.SplitHostPort(l.Addr().String())
	port, err := strconv.ParseUint(text, 10, 16)
	return uint32(port), errors.Join(err, l.Close())
}

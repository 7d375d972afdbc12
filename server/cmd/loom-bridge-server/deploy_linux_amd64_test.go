package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// The variables of a test that runs again as the network that a deployment has: the file that
// is deployed, and the socket of its PostgreSQL.
const (
	deployedFile  = "LOOM_TEST_DEPLOYED"
	deployedStore = "LOOM_TEST_DEPLOYED_STORE"
)

// storeAddress is PostgreSQL's in the network of the test.
const storeAddress = "10.99.0.1"

var deployed = regexp.MustCompile(`(?:name: )?(LOOM_BRIDGE_[A-Z_]+)(?:, value)?: "?([^"}\n]+)"?`)

// The files for deployment start servers with exactly what stands in them: each server has a
// network of its own, in which the file's names lead to the others and to PostgreSQL. The
// servers serve one store, and call each other's tools.
//
// Z23
func TestDeploy(t *testing.T) {
	t.Parallel()
	if name := os.Getenv(deployedFile); name != "" {
		deploy(t, name)
		return
	}
	for _, name := range []string{"compose.yaml", "kubernetes.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := filepath.Join(t.TempDir(), "postgres")
			relay(t, "unix", socket, "tcp", loomDatabase(t))
			inItsOwnNetwork(t, []string{"ip"}, deployedFile+"="+name, deployedStore+"="+socket)
		})
	}
}

// loomDatabase makes the role and the database of the files in a PostgreSQL of its own, and
// returns where that listens.
func loomDatabase(t *testing.T) string {
	t.Helper()
	address := mustStartPostgres(t).Address
	conn, err := pgx.Connect(t.Context(), address)
	must(t, err)
	for _, statement := range []string{"CREATE ROLE loom LOGIN PASSWORD '" + pgSecret + "'", "CREATE DATABASE loom OWNER loom"} {
		_, err = conn.Exec(t.Context(), statement)
		must(t, err)
	}
	must(t, conn.Close(t.Context()))
	place, err := url.Parse(address)
	must(t, err)
	return place.Host
}

// deploy starts two servers of a file in networks of their own, as its orchestrator does.
func deploy(t *testing.T, name string) {
	text, err := os.ReadFile(filepath.Join("deploy", name))
	must(t, err)
	settings := make(map[string]string)
	for _, found := range deployed.FindAllStringSubmatch(string(text), -1) {
		settings[found[1]] = found[2]
	}
	if len(settings) != 9 {
		t.Fatalf("%s: %v", name, settings)
	}
	pods := []string{"bridge-1", "bridge-2"}
	if name == "kubernetes.yaml" {
		pods = []string{"loom-bridge-0", "loom-bridge-1"}
	}
	var addresses []string
	hosts := "127.0.0.1 localhost\n" + storeAddress + " postgres loom-postgres\n"
	for i, pod := range pods {
		addresses = append(addresses, fmt.Sprintf("10.99.%d.2", i+1))
		hosts += fmt.Sprintf("%s %s %s.loom-bridges\n", addresses[i], pod, pod)
	}
	routes(t, hosts)
	relay(t, "tcp", net.JoinHostPort(storeAddress, "5432"), "unix", os.Getenv(deployedStore))

	var servers []*process
	for i, pod := range pods {
		env := append(os.Environ(), asServer+"=1", "PGPASSWORD="+pgSecret)
		for variable, value := range settings {
			if name == "kubernetes.yaml" {
				value = strings.ReplaceAll(value, "$(POD)", pod)
			} else if variable == "LOOM_BRIDGE_BRIDGE_NAME" || variable == "LOOM_BRIDGE_BRIDGE_ADDR" {
				value = regexp.MustCompile(`^bridge-\d+`).ReplaceAllString(value, pod) // the file has one of each server
			}
			env = append(env, variable+"="+value)
		}
		_, port, err := net.SplitHostPort(settings["LOOM_BRIDGE_ADDR"])
		must(t, err)
		servers = append(servers, startPod(t, i+1, env, net.JoinHostPort(addresses[i], port)))
	}
	ctx := t.Context()
	for _, p := range servers { // each serves
		_, err := loombridgev1.NewAdminServiceClient(p.conn).GetStatus(ctx, &loombridgev1.GetStatusRequest{}, grpc.WaitForReady(true))
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, p.Log)
		}
	}
	save(t, servers[0], "tides follow the moon")
	if n := hits(t, servers[1], "moon"); n != 1 {
		t.Errorf("%s: %d hits at the other server", name, n)
	}
	// The tool of an agent at one is called through the other.
	stream := servers[0].attach(ctx, t, "worker", nil, "team:greet")
	waitUntil(t, "the other server lists the tool", func() bool { return servers[1].lists(t, "team:greet") })
	answers := make(chan error, 1)
	go func() {
		_, err := servers[1].bridge().Tool(ctx, &loombridgev1.ToolRequest{AgentId: "a", Name: "team:greet"})
		answers <- err
	}()
	call := nextCall(t, stream)
	must(t, stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_ToolResult{ToolResult: &loombridgev1.AttachToolResult{
		CallId: call.GetCallId(), Success: true,
	}}}))
	must(t, <-answers)
	for _, p := range servers {
		must(t, p.Stop())
		if strings.Contains(p.Log.String(), pgSecret) {
			t.Errorf("%s: the password is in the log", name)
		}
	}
}

// startPod starts a server in a network of its own, with a cable to that of the test.
func startPod(t *testing.T, number int, env []string, address string) *process {
	t.Helper()
	p := &process{Address: address, Log: &output{line: make(chan string, 1)}, ended: make(chan error, 1)}
	command := exec.Command(os.Args[0])
	command.Dir, command.Env, command.Stdout, command.Stderr = t.TempDir(), env, p.Log, p.Log
	thread, cable, started := make(chan int), make(chan error), make(chan error)
	go func() {
		// The thread has the network, and so what it starts; it ends with the goroutine.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		thread <- unix.Gettid()
		err = errors.Join(err, <-cable)
		for _, line := range []string{
			"link set lo up",
			fmt.Sprintf("addr add 10.99.%d.2/24 dev eth0", number),
			"link set eth0 up",
			fmt.Sprintf("route add default via 10.99.%d.1", number),
		} {
			if err == nil {
				err = ip(line)
			}
		}
		if err == nil {
			err = command.Start()
		}
		started <- err
		if err == nil {
			p.ended <- command.Wait()
		}
	}()
	err := ip(fmt.Sprintf("link add pod%d type veth peer name eth0 netns %d", number, <-thread))
	for _, line := range []string{fmt.Sprintf("addr add 10.99.%d.1/24 dev pod%d", number, number), fmt.Sprintf("link set pod%d up", number)} {
		if err == nil {
			err = ip(line)
		}
	}
	cable <- err
	must(t, <-started)
	p.cancel = func() { _ = command.Process.Signal(syscall.SIGTERM) }
	t.Cleanup(func() { _ = p.Stop() })
	p.conn = MustDial(t, p.Address)
	return p
}

// routes makes the network of the test the one that leads from each server to the others, and
// gives all of them names.
func routes(t *testing.T, hosts string) {
	t.Helper()
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	mine := filepath.Join(t.TempDir(), "hosts")
	must(t, os.WriteFile(mine, []byte(hosts), 0o644))
	must(t, unix.Mount(mine, "/etc/hosts", "", unix.MS_BIND, ""))
	must(t, ip("link set lo up"))
	must(t, ip("addr add "+storeAddress+"/32 dev lo"))
	must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644))
}

// ip is the command of that name, in the network of the calling thread.
func ip(line string) error {
	if said, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, bytes.TrimSpace(said))
	}
	return nil
}

// relay forwards connections until the test ends.
func relay(t *testing.T, network, address, toNetwork, to string) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), network, address)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer from.Close()
				var dialer net.Dialer
				onward, err := dialer.DialContext(context.Background(), toNetwork, to)
				if err != nil {
					return
				}
				defer onward.Close()
				go func() {
					_, _ = io.Copy(onward, from)
					_ = onward.Close()
				}()
				_, _ = io.Copy(from, onward)
			}()
		}
	}()
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/server"
)

// MustFile writes a settings file.
func MustFile(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "loom.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func load(tb testing.TB, env map[string]string, args ...string) (Config, error) {
	tb.Helper()
	flags := configFlags()
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	return loadConfig(flags, environment{vars: env}.get)
}

// values are the settings of c as text, by their names.
func values(c Config) map[string]string {
	all := map[string]string{}
	for _, s := range c.settings() {
		all[s.name] = s.to.String()
	}
	return all
}

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	c, err := load(t, nil)
	if diff := cmp.Diff(values(NewConfig()), values(c)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if c.Addr != "127.0.0.1:50051" || c.Limits.Full() != server.DefaultLimits() {
		t.Errorf("config = %+v", c)
	}
}

// A flag is stronger than the environment, which is stronger than the file.
func TestLayers(t *testing.T) {
	t.Parallel()
	path := MustFile(t, `
addr = "127.0.0.1:1"
data-dir = "file-data"
workspace = "file-workspace"
max-calls = 7
drain-timeout = "5s"
`)
	env := map[string]string{
		"LOOM_BRIDGE_CONFIG": path, "LOOM_BRIDGE_ADDR": "localhost:2", "LOOM_BRIDGE_DATA_DIR": "env-data",
		"LOOM_BRIDGE_MAX_STREAMS": "9", "LOOM_BRIDGE_APPROVAL_TIMEOUT": "3m", "LOOM_BRIDGE_METRICS_ADDR": "",
	}
	c, err := load(t, env, "--addr", "[::1]:3", "--log-format=json")
	if err != nil {
		t.Fatal(err)
	}
	want := NewConfig()
	want.File = path
	want.Addr, want.DataDir, want.Workspace = "[::1]:3", "env-data", "file-workspace"
	want.Limits.MaxCalls, want.Limits.MaxStreams, want.LogFormat = 7, 9, "json"
	want.Limits.DrainTimeout, want.ApprovalTimeout = 5*time.Second, 3*time.Minute
	if diff := cmp.Diff(values(want), values(c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLogLevelFromRustLog(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env  map[string]string
		args []string
		want string
	}{
		{map[string]string{"RUST_LOG": "debug"}, nil, "debug"},
		{map[string]string{"RUST_LOG": "WARN"}, nil, "warn"},
		{map[string]string{"RUST_LOG": "loom=trace,info"}, nil, "info"},
		{map[string]string{"RUST_LOG": "debug", "LOOM_BRIDGE_LOG_LEVEL": "error"}, nil, "error"},
		{map[string]string{"RUST_LOG": "debug"}, []string{"--log-level=off"}, "off"},
	} {
		c, err := load(t, test.env, test.args...)
		if err != nil || c.LogLevel != test.want {
			t.Errorf("%v %v: %q, %v", test.env, test.args, c.LogLevel, err)
		}
	}
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, file string
		env        map[string]string
		args       []string
		want       string
	}{
		{"unknown key", "adr = \"x:1\"", nil, nil, `unknown key "adr", nearest is "addr"`},
		{"key with underscores", "data_dir = \"x\"", nil, nil, `nearest is "data-dir"`},
		{"table", "[limits]\nmax-calls = 1", nil, nil, `unknown key "limits.max-calls", nearest is "max-calls"`},
		{"file within a file", "config = \"x\"", nil, nil, `unknown key "config"`},
		{"no TOML", "addr = ", nil, nil, "settings file"},
		{"text for a number", "max-calls = \"many\"", nil, nil, "max-calls"},
		{"number in the environment", "", map[string]string{"LOOM_BRIDGE_MAX_CALLS": "many"}, nil, `(LOOM_BRIDGE_MAX_CALLS) "many": is not a whole number`},
		{"span without a unit", "", map[string]string{"LOOM_BRIDGE_DRAIN_TIMEOUT": "soon"}, nil, `"soon": is not a time with a unit`},
		{"span too long", "", nil, []string{"--retain-records", "99999999h"}, `"99999999h": is longer than 2562047h`},
		{"span of a bare number", "drain-timeout = 5", nil, nil, `"5": is not a time with a unit`},
		{"half a call", "max-calls = 1.5", nil, nil, `"1.5": is not a whole number`},
		{"address", "", nil, []string{"--addr=nonsense"}, `--addr (LOOM_BRIDGE_ADDR) "nonsense": give host:port`},
		{"port", "", nil, []string{"--addr=localhost:99999"}, `"99999" is not a port`},
		{"socket", "", nil, []string{"--addr=unix:"}, "path of the socket"},
		{"metrics on a socket", "", nil, []string{"--metrics-addr=unix:/x"}, "--metrics-addr"},
		{"empty data directory", "", nil, []string{"--data-dir="}, "--data-dir"},
		{"empty workspace", "", nil, []string{"--workspace="}, "--workspace"},
		{"durability", "", nil, []string{"--durability=fast"}, `"fast": is not sync, wal or none`},
		{"certificate without key", "", nil, []string{"--tls-cert=x"}, "--tls-key"},
		{"key without certificate", "", nil, []string{"--tls-key=x"}, "--tls-cert"},
		{"authorities without certificate", "", nil, []string{"--tls-client-ca=x"}, "--tls-client-ca"},
		{"level", "", nil, []string{"--log-level=loud"}, "--log-level"},
		{"format", "", nil, []string{"--log-format=xml"}, "--log-format"},
		{"limit of nothing", "", nil, []string{"--max-calls=0"}, `--max-calls (LOOM_BRIDGE_MAX_CALLS) "0": must be from 1`},
		{"too many units", "", nil, []string{"--blob-max-bytes=9999999999GiB"}, "is not a number of bytes"},
		{"limit too large", "", nil, []string{"--max-receive-bytes=9999999999"}, "--max-receive-bytes"},
		{"level of a tool", "", nil, []string{"--tool-level=fs:stat=4"}, `fs:stat=4: must be from 1 to 3`},
		{"level of no name", "", nil, []string{"--tool-level==2"}, "is no name of a tool"},
		{"half a level", "", nil, []string{"--tool-level=fs:stat"}, `"fs:stat" is not a name, = and a whole number`},
		{"no time", "", nil, []string{"--drain-timeout=0"}, "--drain-timeout"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := test.args
			if test.file != "" {
				args = append(args, "--config", MustFile(t, test.file))
			}
			_, err := load(t, test.env, args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %v, want %q in it", err, test.want)
			}
		})
	}
}

// Every row of the table has a name, a field and a line of help of its own, and
// its default passes its check.
func TestTableOfSettings(t *testing.T) {
	t.Parallel()
	c := NewConfig()
	fields, names := map[string]string{}, map[string]bool{}
	for _, s := range c.settings() {
		if names[s.name] || s.help == "" {
			t.Errorf("--%s is there twice, or without help", s.name)
		}
		names[s.name] = true
		to := fmt.Sprintf("%p", pointer(s.to))
		if other := fields[to]; other != "" {
			t.Errorf("--%s and --%s have one field", s.name, other)
		}
		fields[to] = s.name
	}
}

// pointer is where a field keeps its value.
func pointer(f field) any { return reflect.ValueOf(f).FieldByName("to").UnsafePointer() }

// What a field prints, it reads.
func TestFieldsReadWhatTheyPrint(t *testing.T) {
	t.Parallel()
	given := map[string]string{
		"addr": "unix:/x", "metrics-addr": "localhost:1", "blob-ttl": "shell=1h30m,note=forever", "blob-max-bytes": "3GiB",
		"events-max-age": "0", "scrub-rate": "0", "approval-timeout": "1h1s", "vector-weight": "0.3", "max-calls": "7",
		"max-receive-bytes": "64 KiB", "tool-level": " fs:stat=2, fs:delete=3 ", "tool-names": "fs:*, my:tool",
	}
	want := map[string]string{
		"addr": "unix:/x", "metrics-addr": "localhost:1", "blob-ttl": "note=forever,shell=1h30m", "blob-max-bytes": "3221225472",
		"events-max-age": "0s", "scrub-rate": "0", "approval-timeout": "1h0m1s", "vector-weight": "0.3", "max-calls": "7",
		"max-receive-bytes": "65536", "tool-level": "fs:delete=3,fs:stat=2", "tool-names": "fs:*,my:tool",
	}
	first, second := NewConfig(), NewConfig()
	for _, s := range first.settings() {
		if text, ok := given[s.name]; ok {
			must(t, s.to.Set(text))
		}
	}
	printed := values(first)
	for name, text := range want {
		if printed[name] != text {
			t.Errorf("--%s %s is printed as %q, want %q", name, given[name], printed[name], text)
		}
	}
	for _, s := range second.settings() {
		if err := s.to.Set(printed[s.name]); err != nil && printed[s.name] != "" {
			t.Errorf("--%s %q: %v", s.name, printed[s.name], err)
		}
	}
	if diff := cmp.Diff(printed, values(second)); diff != "" {
		t.Error(diff)
	}
}

func TestSplitAddr(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, network, address string }{
		{"127.0.0.1:0", "tcp", "127.0.0.1:0"},
		{":50051", "tcp", "127.0.0.1:50051"},
		{"localhost:http", "tcp", "localhost:http"},
		{"[::]:1", "tcp", "[::]:1"},
		{"unix:/run/loom.sock", "unix", "/run/loom.sock"},
		{"unix:///run/loom.sock", "unix", "/run/loom.sock"},
		{"unix:loom.sock", "unix", "loom.sock"},
	} {
		network, address, err := splitAddr(test.in)
		if err != nil || network != test.network || address != test.address {
			t.Errorf("%s: %s %s %v", test.in, network, address, err)
		}
	}
}

func TestConfigErrorNamesFieldAndValue(t *testing.T) {
	t.Parallel()
	_, err := load(t, nil, "--durability=fast")
	bad, ok := errors.AsType[*ConfigError](err)
	if !ok || bad.Field != "durability" || bad.Value != "fast" {
		t.Errorf("err = %#v", err)
	}
}

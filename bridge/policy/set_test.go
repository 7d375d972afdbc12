package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// parse reads a file of an operator.
func parse(tb testing.TB, written string) *policy.Set {
	tb.Helper()
	set, err := policy.Parse("loom.toml", []byte(written), &policy.Options{
		Home: "/home/op", Forbidden: []string{"/var/lib/loom"}, Getenv: func(name string) string { return map[string]string{"TOKEN": "t"}[name] },
	})
	must(tb, err)
	return set
}

func profile(tb testing.TB, set *policy.Set, name string) policy.Profile {
	tb.Helper()
	p, ok := set.Profile(name)
	if !ok {
		tb.Fatalf("there is no profile %s", name)
	}
	return p
}

// What a profile says is laid over the one that it extends: lists are added to, all else
// replaces.
func TestProfilesExtend(t *testing.T) {
	set := parse(t, `
addr = "127.0.0.1:1"

[profile.tools]
extends = "builtin:work"
read = ["/opt/toolchain"]
write = ["~/.cache/pip"]
protect = ["+deploy/**", "Makefile"]
environment = { A = "1", B = "env:TOKEN" }
limits = { cpu = "60s", memory = "1GiB", processes = 256, wall = "10m" }

[profile.web]
extends = "tools"
environment = { A = "2" }
limits = { cpu = "30s" }
[[profile.web.allow]]
host = "*.NPMJS.org"
[[profile.web.allow]]
host = "api.github.com"
paths = ["/repos/acme/"]
methods = ["get", "POST"]
secret = { env = "GITHUB_TOKEN", from = "env:GITHUB_TOKEN", header = "Authorization" }
`)
	p := profile(t, set, "web")
	if p.Name != "web" || p.Mode != sandbox.ModeNet {
		t.Errorf("profile %s has the mode %s; rules for hosts bring net", p.Name, p.Mode)
	}
	if !slices.Equal(p.Read, []string{"/opt/toolchain"}) || !slices.Equal(p.Write, []string{"/home/op/.cache/pip"}) {
		t.Errorf("places %v %v", p.Read, p.Write)
	}
	if n := len(sandbox.Protected()); len(p.Protect) != n+2 || p.Protect[n] != "deploy" {
		t.Errorf("protected: %v", p.Protect)
	}
	if got := strings.Join(p.Env(), " "); got != "A=2 B=t" {
		t.Errorf("variables %s", got)
	}
	if l := p.Limits; l.CPU != 30*time.Second || l.Memory != 1<<30 || l.Processes != 256 || l.Output != sandbox.DefaultLimits().Output || p.Wall != 10*time.Minute {
		t.Errorf("limits %+v %v", l, p.Wall)
	}
	if len(p.Hosts) != 2 || p.Hosts[0].Host != "*.npmjs.org" || !slices.Equal(p.Hosts[1].Methods, []string{"GET", "POST"}) || p.Hosts[1].Secret.Header != "Authorization" {
		t.Errorf("hosts %+v", p.Hosts)
	}
	if p := profile(t, set, "tools"); p.Mode != sandbox.ModeWork || len(p.Hosts) != 0 || p.Environment["A"] != "1" {
		t.Errorf("the profile that was extended changed: %+v", p)
	}
}

// What can't be used is named with its file, line and key, and with what is allowed.
func TestWhatProfilesRefuse(t *testing.T) {
	for written, want := range map[string]string{
		"[profile.a]\nmode = \"wrk\"":                                       `loom.toml, line 2: profile.a.mode: "wrk" is not read, work, net, open or off`,
		"[profile.a]\nmode = 3":                                             "loom.toml, line 2: profile.a.mode: must be a text in quotes",
		"[profile.a]\nmode = \"off\"":                                       "loom.toml, line 2: profile.a.mode: off leaves the sandbox, which the operator must allow: start the server with --sandbox-allow-off",
		"\n[profile.a]\nmod = \"read\"":                                     `loom.toml, line 3: profile.a.mod: there is no such key, nearest is "mode"; there are extends, mode, `,
		"[profile.a]\nlimits = { memry = \"1\" }":                           `loom.toml, line 2: profile.a.limits.memry: there is no such key, nearest is "memory"; there are cpu, `,
		"[profile.a]\nextends = \"b\"\n[profile.b]\nextends = \"a\"":        "loom.toml, line 2: profile.a.extends: goes in a circle: a extends b extends a",
		"[profile.a]\nextends = \"a\"":                                      "loom.toml, line 2: profile.a.extends: goes in a circle: a extends a",
		"[profile.a]\nextends = \"builtin:of\"":                             `loom.toml, line 2: profile.a.extends: there is no profile "builtin:of", nearest is`,
		"[profile.a]\nread = [\"etc\"]":                                     `loom.toml, line 2: profile.a.read: "etc" is not absolute`,
		"[profile.a]\nread = [\"/\"]":                                       "is the whole machine",
		"[profile.a]\nread = [\"/opt/*\"]":                                  "is a pattern",
		"[profile.a]\nwrite = [\"/var\"]":                                   "would give away what is the server's own",
		"[profile.a]\nread = [\"/var/lib/loom/x\"]":                         "would give away",
		"[profile.a]\nmode = \"read\"\nwrite = [\"/opt/x\"]":                "loom.toml, line 3: profile.a.write: means nothing in mode read",
		"[profile.a]\nprotect = [\"../x\"]":                                 `profile.a.protect: "../x" is no path inside of the workspace`,
		"[profile.a]\nmode = \"work\"\n[[profile.a.allow]]\nhost = \"a.b\"": "means nothing in mode work",
		"[profile.a]\n[[profile.a.allow]]\nhost = \"a.b\"\n[[profile.a.allow]]\nhost = \"http://a.b\"": "loom.toml, line 5: profile.a.allow[1].host: ",
		"[[profile.a.allow]]\nhost = \"a.b\"\nports = [70000]":                                         "profile.a.allow[0].ports: 70000 is not 1 to 65535",
		"[[profile.a.allow]]\nhost = \"a.b\"\nsecret = { env = \"A\", from = \"x\", header = \"H\" }":  `from "x" is not env:NAME or file:/path`,
		"[profile.a]\nenvironment = { A = \"env:NONE\" }":                                              "the server has no variable NONE",
		"[profile.a]\nlimits = { memory = \"1GB\" }":                                                   `"1GB" is not a size above 0, such as 64MiB`,
		"[profile.a]\nlimits = { cpu = \"-1s\" }":                                                      "is not a time above 0",
		"[profile.\"a b\"]\nmode = \"read\"":                                                           "is no name for a profile",
		"[[bind]]\nprofile = \"wrk\"":                                                                  `loom.toml, line 2: bind[0].profile: there is no profile "wrk", nearest is "work"; there are net, open, read, work`,
		"[[bind]]\n[[bind]]\napproval = \"maybe\"":                                                     `loom.toml, line 3: bind[1].approval: "maybe" is not never, on-leave, tool, always or level:1 to level:3`,
		"[[bind]]\ntool = \"a*b\"":                                                                     `bind[0].tool: pattern "a*b" has a * that is not its end`,
		"[[bind]]\nwho = \"a\"":                                                                        "there are tenant, agent, tool, profile, approval",
	} {
		_, err := policy.Parse("loom.toml", []byte(written), &policy.Options{Forbidden: []string{"/var/lib/loom"}})
		var bad *policy.FileError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q\n got %v\nwant %s", written, err, want)
		}
	}
}

// Of the bindings that match a call the nearest one gives the profile, and the nearest that
// says something of approval gives that; their order counts only among equals.
func TestTheNearestBindingCounts(t *testing.T) {
	set := parse(t, `
[[bind]]
profile = "read"
[[bind]]
tool = "system:shell"
profile = "net"
[[bind]]
agent = "ci-*"
profile = "work"
[[bind]]
agent = "ci-*"
profile = "open"
[[bind]]
agent = "ci-deploy*"
tool = "system:*"
approval = "always"
[[bind]]
agent = "ci-deploy-1"
profile = "open"
[[bind]]
tenant = "acme"
approval = "never"
`)
	for _, c := range []struct{ tenant, agent, tool, profile, approval string }{
		{"t", "x", "fs:stat", "read", "on-leave"},
		{"t", "x", "system:shell", "net", "on-leave"},
		{"t", "ci-7", "system:shell", "work", "on-leave"},
		{"t", "ci-deploy-2", "system:shell", "work", "always"},
		{"t", "ci-deploy-1", "system:shell", "open", "always"},
		{"acme", "ci-deploy-1", "system:shell", "open", "never"},
	} {
		if got := set.For(c.tenant, c.agent, c.tool).Name; got != c.profile {
			t.Errorf("%v: profile %s", c, got)
		}
		if got := set.Approval(c.tenant, c.agent, c.tool); string(got) != c.approval {
			t.Errorf("%v: approval %s", c, got)
		}
	}
}

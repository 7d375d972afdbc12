package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--version"}, `^loom-bridge-server \d+\.\d+\.\d+\S*\n$`},
		{[]string{"--help"}, `(?s)loom-bridge-server --addr 127\.0\.0\.1:0.*Where it serves.*--data-dir directory  .*\(\./\.loom/store\)\n.*memory +\d+  Long-term memory`},
		{[]string{"help", "mcp", "install"}, `Write a host's own configuration`},
		{[]string{"help"}, `(?s)Examples:.*check`},
		{[]string{"help", "memory"}, `(?s)Search, list.*forget.*\nLong-term memory:\n.*--max-versions`},
		{[]string{"help", "limits"}, `^\nLimits on calls and connections:\n  --max-receive-bytes bytes +largest request message \(4MiB\)\n`},
		{[]string{"help", "all"}, `(?s)--addr host.*--max-versions versions +earlier versions kept [^\n]* \(1000\)\n.*--blob-ttl`},
		{[]string{"check", "--help"}, `No server may be`},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), test.args, noEnvironment, &out, &out); err != nil || !regexp.MustCompile(test.want).MatchString(out.String()) {
			t.Errorf("%v: %v\n%s", test.args, err, out.String())
		}
	}
}

// What there is no help about is said, with what is nearest.
func TestHelpAboutNothing(t *testing.T) {
	for args, want := range map[string]string{
		"memroy": "loom-bridge-server memory --help", "recrods": "loom-bridge-server records --help", "mcp instal": "loom-bridge-server mcp install --help",
	} {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"help"}, strings.Fields(args)...), noEnvironment, &out, &out)
		if err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: %v\n%s", args, err, out.String())
		}
	}
}

// A wrong command is answered with the one that was meant, at each level, or with the list; one
// that has none says so. One that deletes is named for a word that is one letter off.
func TestWrongCommand(t *testing.T) {
	for args, want := range map[string]string{
		"memroy":             `"memroy" for "loom-bridge-server"; nearest is ` + "`loom-bridge-server memory`",
		"chekc --data-dir x": "nearest is `loom-bridge-server check`",
		"backup creaet":      "nearest is `loom-bridge-server backup create`",
		"records exprot":     "nearest is `loom-bridge-server records export`",
		"mcp instal":         "nearest is `loom-bridge-server mcp install`",
		"serve":              `"serve" for "loom-bridge-server"; see ` + "`loom-bridge-server --help`",
		"earse":              "; see `loom-bridge-server --help`",
		"eras":               "nearest is `loom-bridge-server erase`",
		"work":               "nearest is `loom-bridge-server workspace`",
		"backup remove":      "; see `loom-bridge-server backup --help`",
		"mcp remove":         "; see `loom-bridge-server mcp --help`",
		"records list":       "; see `loom-bridge-server records --help`",
		"records un":         "; see `loom-bridge-server records --help`",
		"help nope":          `no help about "nope"; see ` + "`loom-bridge-server --help`",
		"local here":         "takes no arguments; see loom-bridge-server local --help",
	} {
		var out bytes.Buffer
		err := run(t.Context(), strings.Fields(args), noEnvironment, &out, &out)
		if err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: %v\n%s", args, err, out.String())
		}
	}
}

// The help shows every setting, each on a line that fits a wide terminal.
func TestHelpShowsEverySetting(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	must(t, run(t.Context(), []string{"help", "all"}, noEnvironment, &out, &out))
	lines := strings.Split(out.String(), "\n")
	for _, name := range settingNames() {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "  --"+name+" ") }) {
			t.Errorf("no line for --%s", name)
		}
	}
	must(t, run(t.Context(), []string{"--help"}, noEnvironment, &out, &out))
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line); n > 128 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// The example of --credentials in the help is one that a server takes, and it has every field
// that there is but the other ways to name a caller.
func TestHelpOfCredentials(t *testing.T) {
	var out bytes.Buffer
	must(t, run(t.Context(), []string{"--help"}, noEnvironment, &out, &out))
	_, example, _ := strings.Cut(out.String(), "[[credential]]")
	example, _, _ = strings.Cut(example, "\n\n")
	example = "[[credential]]" + strings.NewReplacer("2bb8...", hashOf("token"), "expires = 2027", "expires = 9000").Replace(example)
	for _, field := range []string{"token_sha256", "tenant", "agents", "provides", "edits", "reads_users", "writes_users", "administers_users", "approves", "operates", "expires"} {
		if !strings.Contains(example, field) {
			t.Errorf("no %s in\n%s", field, example)
		}
	}
	p := MustRun(t, t.TempDir(), "--credentials", MustFile(t, example)).withToken(t, "token")
	if _, err := p.admin().ListScopes(t.Context(), &loombridgev1.ListScopesRequest{Tenant: "other"}); err != nil { // it operates
		t.Errorf("who has the token of the help: %v", err)
	}
	for agent, want := range map[string]codes.Code{"researcher-1": codes.OK, "editor": codes.PermissionDenied} {
		if _, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "x"}); status.Code(err) != want {
			t.Errorf("%s: %v, want %v", agent, err, want)
		}
	}
}

// Commands that ask a server say so of --addr, and the value of every flag has a name.
func TestHelpOfCommands(t *testing.T) {
	for _, command := range [][]string{
		{"approvals"},
		{"audit", "list"},
		{"backup"},
		{"check"},
		{"doctor"},
		{"erase"},
		{"erase", "verify"},
		{"export"},
		{"health"},
		{"hook"},
		{"local"},
		{"mcp"},
		{"migrate"},
		{"records", "export"},
		{"records", "relations"},
		{"repair"},
		{"scopes"},
		{"sessions", "export"},
		{"workspace", "move"},
	} {
		var out bytes.Buffer
		must(t, run(t.Context(), append(command, "--help"), noEnvironment, &out, &out))
		if line := regexp.MustCompile(`--\S+ string .*`).FindString(out.String()); line != "" {
			t.Errorf("%v: %s", command, line)
		}
		if !slices.Contains([]string{"hook", "local", "mcp"}, command[0]) && strings.Contains(out.String(), "serve gRPC here") {
			t.Errorf("%v: what --addr is", command)
		}
	}
}

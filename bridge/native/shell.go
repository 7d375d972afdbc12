package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/egress"
	"github.com/loom-bridge/loom-bridge/bridge/jobs"
	"github.com/loom-bridge/loom-bridge/bridge/native/script"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Limits of a command, in addition to those of its policy.
const (
	// MaxShellTimeout bounds the timeout that a call may ask for.
	MaxShellTimeout = 10 * time.Minute
	// maxStderrBytes bounds what is kept of stderr: its beginning and its end.
	maxStderrBytes = 128 << 10
	// maxCommandBytes bounds what an error repeats of a command.
	maxCommandBytes = 256
)

// ShellOptions are the options of the tools that run programs.
type ShellOptions struct {
	// Runner runs them. Default: there are no such tools.
	Runner sandbox.Runner
	// Gate is the way out of programs whose profiles have one. Default: there is none.
	Gate *egress.Gate
	// Refused is why there is no Runner, for callers.
	Refused string
	// Allow are the names of programs that may be run; "*" is all of them. Default: every one
	// where the call is confined, else Commands.
	Allow []string
	// ScriptCacheBytes bounds the answers of scripts that are kept. Default: none are.
	ScriptCacheBytes int
	// Jobs are the background jobs. Default: no background jobs.
	Jobs *jobs.Jobs
}

// Commands are the programs that agents of loom.v1 may run, and others where nothing confines
// programs, unless a setting says otherwise: the 58 of loom.v1, jq and tee. Several run other
// programs: the sandbox confines, not the list.
func Commands() []string {
	return strings.Fields(`ls pwd find which whereis file stat realpath readlink basename dirname
cat head tail less more wc grep awk sed sort uniq cut tr diff
echo date whoami hostname uname env printenv df du free uptime ps top htop
ping curl wget nslookup dig host ifconfig ip netstat ss
git python python3 node npm cargo rustc make cmake jq tee`)
}

// shell holds what the tools that run programs share.
type shell struct {
	files  *files
	runner sandbox.Runner
	gate   *egress.Gate // nil without a way out
	allow  []string
	lent   lendings
	cache  *script.AnswerCache // of the answers of scripts
	jobs   *jobs.Jobs          // nil without any
}

func newShell(f *files, o ShellOptions) *shell {
	return &shell{files: f, runner: o.Runner, gate: o.Gate, allow: o.Allow, cache: script.NewCache(o.ScriptCacheBytes), jobs: o.Jobs}
}

// programs are the programs that a call may run.
type programs struct {
	all   bool
	names []string
	// remedy is how more may be run, for a call that is refused; empty for agents of loom.v1,
	// which know the refusal by its words.
	remedy string
}

func (p programs) allow(name string) bool { return p.all || slices.Contains(p.names, name) }

// refuse is what a call is answered with that may not run a program.
func (p programs) refuse(name string) *tools.Error {
	failure := notAllowed(name)
	failure.Message += p.remedy
	return failure
}

// programs says what a call may run: what the operator wrote, else whatever its profile
// confines.
func (s *shell) programs(ctx context.Context, c tools.Input) programs {
	switch {
	case slices.Contains(s.allow, AllPrograms):
		return programs{all: true}
	case len(s.allow) > 0 && c.ListedPrograms:
		return programs{names: s.allow}
	case len(s.allow) > 0:
		return programs{names: s.allow, remedy: "; the setting --shell-allow names the programs that are: add it there, or leave the setting out, for all programs that the sandbox confines"}
	case c.ListedPrograms:
		return programs{names: Commands()}
	case c.Profile.Mode != sandbox.ModeOff && s.runner.Describe(ctx).Confined():
		return programs{all: true}
	}
	return programs{names: Commands(), remedy: "; nothing confines the programs of this call (--sandbox off, or a profile of mode off), so only the programs of a list run: --shell-allow '*' allows all, --shell-allow NAME,NAME these"}
}

// AllPrograms stands for all programs in ShellOptions.Allow.
const AllPrograms = "*"

// The names of the tools.
const (
	toolShell    = "system:shell"
	toolShellRun = "shell:run"
)

// needsSchema is the argument by which a command asks a person for places.
const needsSchema = `"needs":{"type":"object","additionalProperties":false,"description":"Absolute places outside of the workspace that it must reach; a person is asked for those that it may not","properties":{
"read":{"type":"array","maxItems":16,"items":{"type":"string"}},"write":{"type":"array","maxItems":16,"items":{"type":"string"}}}}`

const (
	shellSchema = `{"type":"object","properties":{
"command":{"type":"string","minLength":1,"description":"Program to run, such as git; or a command line, when there are no args"},
"args":{"type":"array","maxItems":4096,"description":"Its arguments, one string each"},
"cwd":{"type":"string","description":"Folder to run in, relative to the workspace (default .)"},
"stdin":{"type":"string","description":"Text for its standard input"},
"timeout":{"type":"number","exclusiveMinimum":0,"description":"Seconds until it is killed"},
"background":{"type":"boolean","description":"Start it and do not wait, as with a server: gives a job_id (default false)"},
` + needsSchema + `},
"required":["command"]}`
	shellRunSchema = `{"type":"object","properties":{
"command":{"type":"string","minLength":1,"description":"Command line, such as: git log --oneline | head -5"},
"cwd":{"type":"string","description":"Folder to run in, relative to the workspace (default .)"},
"stdin":{"type":"string","description":"Text for its standard input"},
"timeout":{"type":"number","exclusiveMinimum":0,"description":"Seconds until it is killed"},
"background":{"type":"boolean","description":"Start it and do not wait, as with a server: gives a job_id (default false)"},
` + needsSchema + `},
"required":["command"]}`
)

func (s *shell) tools() []tool {
	cli := []string{"git", "python", "node", "grep", "jq", "make"}
	list := []tool{
		{tools.Descriptor{
			Name:        toolShell,
			Description: "Run a program in the workspace, confined: it can change files there, and reaches no network but the hosts of its profile. Gives stdout, stderr and exit_code.",
			Schema:      json.RawMessage(shellSchema),
			Level:       tools.LevelFunction, Category: "shell", ResultKind: "json", Mutates: true, CLIEquivalents: cli,
		}, s.runs(oneProgram), s.preview(oneProgram)},
		{tools.Descriptor{
			Name:        toolShellRun,
			Description: "Run a command line in the workspace, confined: it can change files there, and reaches no network but the hosts of its profile. Pipes, redirections, && and loops work. Gives stdout, stderr and exit_code.",
			Schema:      json.RawMessage(shellRunSchema),
			Level:       tools.LevelShell, Category: "shell", ResultKind: "json", Mutates: true, CLIEquivalents: cli,
		}, s.runs(aLine), s.preview(aLine)},
		s.scriptTool(),
	}
	if s.jobs != nil {
		list = append(list, s.jobTools()...)
	}
	for i := range list {
		list[i].Workspace = true
		list[i].run = guarding(list[i].run)
	}
	return list
}

// command is what is run for a call.
type command struct {
	argv  []string
	line  string   // for the shell; empty for one program
	names []string // words that may be the names of stored results
	files []string // words that may be the names of files, in their order
}

// commandForm is how a call's arguments become a command.
type commandForm func(name string, list []any, may programs) (command, error)

// runs is a tool that runs commands.
func (s *shell) runs(read commandForm) tools.Func {
	return func(ctx context.Context, c tools.Input) (tools.Output, error) {
		cmd, err := s.command(ctx, c, read)
		if err != nil {
			return tools.Output{}, err
		}
		return s.run(ctx, c, cmd)
	}
}

// command is what a call runs.
func (s *shell) command(ctx context.Context, c tools.Input, read commandForm) (command, error) {
	list, _ := c.Args["args"].([]any)
	return read(c.String("command", ""), list, s.programs(ctx, c))
}

// aLine is a line of the shell.
func aLine(line string, _ []any, may programs) (command, error) { return parse(line, may) }

// oneProgram is a program with its arguments; without any also a whole line, as models write it.
func oneProgram(name string, list []any, may programs) (command, error) {
	signs := " \t"
	if may.all {
		signs += lineSigns
	}
	if len(list) == 0 && !slices.Contains(may.names, name) && strings.ContainsAny(name, signs) {
		cmd, err := parse(name, may)
		if err != nil && !may.all {
			return cmd, may.refuse(name)
		}
		return cmd, err
	}
	if !may.allow(name) {
		return command{}, may.refuse(name)
	}
	argv := []string{name}
	for _, item := range list {
		word, _ := item.(string) // what is no string is an empty one
		argv = append(argv, word)
	}
	return command{argv: argv, names: argv[1:], files: argv}, nil
}

// lineSigns are characters, in addition to space, that a command line may contain but the name
// of a program does not.
const lineSigns = "\n;|&<>()$`\"'"

func notAllowed(name string) *tools.Error {
	return tools.Errorf(tools.PermissionDenied, "Permission denied: Command '%s' is not allowed", text.Cut(name, maxCommandBytes, text.Ellipsis))
}

// run starts a command and gives its output as it comes.
func (s *shell) run(ctx context.Context, c tools.Input, cmd command) (tools.Output, error) {
	for _, word := range cmd.argv {
		if strings.IndexByte(word, 0) >= 0 {
			return tools.Output{}, refuse("args", "must not hold NUL")
		}
	}
	cwd, err := s.folder(ctx, c)
	if err != nil {
		return tools.Output{}, err
	}
	timeout, err := timeoutOf(c)
	if err != nil {
		return tools.Output{}, err
	}
	giveBack, err := s.lend(ctx, c, cwd, cmd.names)
	if err != nil {
		return tools.Output{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	job, err := s.job(ctx, c, cmd.argv, cwd)
	if err != nil {
		cancel()
		giveBack()
		return tools.Output{}, err
	}
	if c.Bool("background") && s.jobs != nil {
		cancel()
		return s.startJob(ctx, c, job, timeout, giveBack)
	}
	p := newPrinted()
	go func() {
		defer cancel()
		streams := sandbox.Streams{Stdout: p, Stderr: &p.stderr}
		if stdin, ok := c.Args["stdin"].(string); ok {
			streams.Stdin = strings.NewReader(stdin)
		}
		out, err := s.runner.Run(ctx, job, streams)
		giveBack()
		p.denied, p.names = deniedTo(job), cmd.names
		p.end(out, runFailure(cmd.argv[0], err))
	}()
	return tools.Output{Values: p.values, BodyKey: "stdout", Body: p, BodyLossy: true, Tier: s.runner.Describe(ctx).Tier}, nil
}

// job is a run of a program for a call of a tool.
func (s *shell) job(ctx context.Context, c tools.Input, argv []string, cwd string) (sandbox.Job, error) {
	job := sandbox.Job{Scope: c.Scope, Argv: argv, Env: c.Profile.Env(), Cwd: cwd, Root: c.Root, Policy: c.Profile.Sandbox()}
	// What a program will write is not known before: it may, as long as there is room for a
	// file with something in it.
	err := c.Room.Check(1, 1)
	if err != nil {
		return job, err
	}
	if job.Policy.Hide, err = s.hidden(c); err != nil {
		return job, err
	}
	if err := needs(ctx, c, &job.Policy); err != nil || s.gate == nil {
		return job, err
	}
	switch job.Policy.Mode {
	case sandbox.ModeNet, sandbox.ModeOpen, sandbox.ModeOff:
		session, err := s.gate.Session(egress.CallerOf(c), egress.ForCall(c, egress.Policy{}))
		if err != nil {
			return job, wrapped(tools.PermissionDenied, "Permission denied: "+err.Error(), err)
		}
		job.Network = session // it ends with the run
	}
	return job, nil
}

// deniedTo are the connections that a run was denied, as texts for a model.
func deniedTo(job sandbox.Job) []string {
	if session, ok := job.Network.(*egress.Session); ok {
		return session.Denied()
	}
	return nil
}

// hidden are the places in the workspace that a command does not see: the store, and what
// its profile hides.
func (s *shell) hidden(c tools.Input) ([]string, error) {
	var places []string
	if s.files.storePath != "" {
		places = append(places, s.files.storePath)
	}
	if c.Profile.HideBestEffort && s.runner.Describe(context.Background()).Tier == sandbox.TierLandlock {
		return places, nil
	}
	workspace, err := filepath.Abs(c.Root.Name())
	if err == nil {
		workspace, err = filepath.EvalSymlinks(workspace)
	}
	if err != nil {
		return nil, wrapped(tools.Failed, "the workspace is gone", err)
	}
	for _, path := range c.Profile.Hide {
		places = append(places, filepath.Join(workspace, path))
	}
	if c.Closed == nil {
		return places, nil
	}
	entries, err := fs.ReadDir(c.Root.FS(), ".")
	if err != nil {
		return nil, wrapped(tools.Failed, "the workspace can't be listed", err)
	}
	for _, e := range entries {
		if c.Closed(e.Name()) {
			places = append(places, filepath.Join(workspace, e.Name()))
		}
	}
	return places, nil
}

// folder is where a command runs, relative to the workspace.
func (s *shell) folder(ctx context.Context, c tools.Input) (string, error) {
	name := c.String("cwd", "")
	if name == "" {
		return ".", nil
	}
	p, err := s.files.find(ctx, c.Root, name, want{})
	if err != nil {
		return "", err
	}
	defer p.close()
	switch {
	case p.info == nil:
		return "", tools.Errorf(tools.NotFound, "File not found: %s", name)
	case !p.info.IsDir():
		return "", tools.Errorf(tools.Failed, "not a folder: %s", name)
	}
	return p.rel, nil
}

// timeoutOf returns the time that a call asks for, at most its profile's; the call's
// deadline applies too.
func timeoutOf(c tools.Input) (time.Duration, error) {
	most := MaxShellTimeout
	if c.Profile.Wall > 0 {
		most = min(most, c.Profile.Wall)
	}
	number, ok := c.Args["timeout"].(json.Number)
	if !ok {
		return most, nil
	}
	seconds, err := number.Float64()
	if err != nil || seconds > MaxShellTimeout.Seconds() {
		return 0, refuse("timeout", fmt.Sprintf("must be at most %d seconds", int(MaxShellTimeout.Seconds())))
	}
	return min(most, time.Duration(seconds*float64(time.Second))), nil
}

// runFailure says for the model why a command did not run.
func runFailure(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sandbox.ErrNoProgram):
		if hint := instead(name); hint != "" {
			return wrapped(tools.Failed, hint, err)
		}
		return wrapped(tools.Failed, "there is no program "+text.Cut(name, maxCommandBytes, text.Ellipsis)+" in the sandbox", err)
	case errors.Is(err, sandbox.ErrUnavailable), errors.Is(err, sandbox.ErrPolicy):
		return wrapped(tools.PermissionDenied, "Permission denied: "+err.Error(), err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return wrapped(tools.Failed, err.Error(), err)
}

// Absent gives the tool that answers for one of loom.v1 that is not here, or nil.
// Lists do not show it. It is safe for concurrent use.
//
// They are the two that run programs, under either of their names, for servers that run
// none: they refuse every command with the words of loom.v1's core, and say why where
// that is known. loom-py looks for the words: it then asks the person in front of it, and
// runs the command itself. An answer that there is no such tool would make it give up.
func Absent(why string) func(name string) *tools.Tool {
	absent := map[string]*tools.Tool{}
	for _, name := range []string{toolShell, toolShellRun} {
		t, err := tools.New(tools.Descriptor{
			Name:        name,
			Description: "Run a program. It is not served: every command is refused.",
			Schema:      json.RawMessage(shellSchema),
			Level:       tools.LevelFunction,
			Category:    "shell",
			ResultKind:  "json",
			Workspace:   true,
		}, refuseCommand(why))
		if err != nil {
			panic(err) // the descriptor is a constant, and a test makes it
		}
		absent[name], absent[strings.ReplaceAll(name, ":", "_")] = t, t
	}
	return func(name string) *tools.Tool { return absent[name] }
}

func refuseCommand(why string) tools.Func {
	return func(_ context.Context, c tools.Input) (tools.Output, error) {
		failure := notAllowed(c.String("command", ""))
		if why != "" {
			failure.Message += ": " + why
		}
		return tools.Output{}, failure
	}
}

package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/native/script"
	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

const (
	toolScript = "python:run_script"
	python     = "python3"

	// maxScriptHeld bounds what a script prints and is still given with its result. What is
	// longer is the body of the answer, passed on while it comes.
	maxScriptHeld = 256 << 10
	// maxScriptSeen bounds the bytes of the files that a kept answer was made from: they
	// are read again before it is given.
	maxScriptSeen = 32 << 20
	// maxTraceback and maxSaid bound the ends of a traceback and of what a script printed
	// that an error shows.
	maxTraceback = 2000
	maxSaid      = 500
)

const scriptSchema = `{"type":"object","properties":{
"path":{"type":"string","minLength":1,"description":"Python script of the workspace, such as scripts/report.py"},
"script":{"type":"string","minLength":1,"description":"Same as path"},
"function":{"type":"string","description":"Function of it to call, whose result is given as JSON; without one the script runs as a whole, and what it prints is the result"},
"args":{"type":["object","array"],"description":"Arguments: an object by name, or a list. Of a script as a whole: a list is its command line, an object its standard input as JSON"},
"cache":{"type":"boolean","description":"Take the result of an equal run, if script, arguments and all it read are the same (default true)"},
"timeout":{"type":"number","exclusiveMinimum":0,"description":"Seconds until it is killed"},
` + needsSchema + `}}`

func (s *shell) scriptTool() tool {
	return tool{tools.Descriptor{
		Name:        toolScript,
		Description: "Run a Python script of the workspace, confined, and get what a function of it returns. Gives result, and stdout and stderr if it printed anything. An equal run is answered from a cache.",
		Schema:      json.RawMessage(scriptSchema),
		Level:       tools.LevelScript, Category: "script", ResultKind: "json", Mutates: true, CLIEquivalents: []string{"python", "python3"},
	}, s.runScript, s.previewScript}
}

// scriptCall is one call of a script.
type scriptCall struct {
	shell    *shell
	in       tools.Input
	name     string // as the caller wrote it
	rel      string // in the workspace
	function string
	request  script.Request
	timeout  time.Duration
	key      script.Key
	cached   bool // answers may come from the cache, and go there
	started  time.Time
}

func (s *shell) runScript(ctx context.Context, c tools.Input) (tools.Output, error) {
	call, err := s.scriptCall(ctx, c)
	if err != nil {
		return tools.Output{}, err
	}
	tier := s.runner.Describe(ctx).Tier
	if call.cached {
		if values, ok := call.fromCache(ctx); ok {
			return tools.Output{Values: values, Tier: tier}, nil
		}
	}
	out, err := call.run(ctx)
	out.Tier = tier
	return out, err
}

// scriptCall reads the arguments and the script.
func (s *shell) scriptCall(ctx context.Context, c tools.Input) (*scriptCall, error) {
	call := &scriptCall{shell: s, in: c, name: c.String("path", c.String("script", "")), function: c.String("function", "")}
	if call.name == "" {
		return nil, refuse("path", "is required")
	}
	if may := s.programs(ctx, c); !may.allow(python) {
		return nil, may.refuse(python)
	}
	var err error
	if call.timeout, err = timeoutOf(c); err != nil {
		return nil, err
	}
	file, info, rel, err := s.files.open(ctx, c.Root, call.name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > script.MaxBytes {
		return nil, tools.Errorf(tools.TooLarge, "%s has %d bytes, more than the limit of %d for a script", call.name, info.Size(), script.MaxBytes)
	}
	content, err := io.ReadAll(io.LimitReader(file, script.MaxBytes))
	if err != nil {
		return nil, failure(call.name, err)
	}
	workspace, err := filepath.EvalSymlinks(c.Root.Name())
	if err == nil {
		workspace, err = filepath.Abs(workspace)
	}
	if err != nil {
		return nil, failure(call.name, err)
	}
	if approved, ok := tools.PartNamed(c.Approved, scriptPart(rel)); ok {
		content = approved // what a person saw, whatever lies there by now
	}
	args := c.Args["args"]
	call.rel, call.request = rel, script.Request{
		Path: filepath.Join(workspace, rel), Workspace: workspace, Bytes: content, Function: call.function, Args: args,
	}
	use, said := c.Args["cache"].(bool)
	call.cached = s.cache != nil && (use || !said)
	policy, err := json.Marshal(c.Profile)
	if err != nil {
		return nil, err
	}
	call.key = script.KeyOf([]byte(workspace), []byte(rel), content, []byte(call.function), text.CanonicalJSON(args), policy)
	return call, nil
}

// fromCache gives the answer of an equal run, if all that it read is still the same.
func (c *scriptCall) fromCache(ctx context.Context) (map[string]any, bool) {
	entry, ok := c.shell.cache.Get(c.in.Scope.Tenant, c.key)
	if !ok {
		return nil, false
	}
	left := int64(maxScriptSeen)
	for _, seen := range entry.Reads {
		digest, _, err := c.look(ctx, seen.Read, &left)
		if err != nil || digest != seen.Digest {
			return nil, false
		}
	}
	values, err := decodeValues(entry.Values)
	if err != nil {
		return nil, false
	}
	values["cached"] = true
	return values, true
}

func decodeValues(content []byte) (map[string]any, error) {
	values := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	err := d.Decode(&values)
	return values, err
}

// keep puts an answer into the cache, if it was made from what is still there.
func (c *scriptCall) keep(ctx context.Context, reply script.Reply, values map[string]any) {
	if !c.cached || !reply.Pure {
		return
	}
	entry := script.Entry{}
	left := int64(maxScriptSeen)
	for _, read := range reply.Reads {
		digest, changed, err := c.look(ctx, read, &left)
		if err != nil || !changed.Before(c.started) {
			return // it may not be what the script has read
		}
		entry.Reads = append(entry.Reads, script.Seen{Read: read, Digest: digest})
	}
	var err error
	if entry.Values, err = json.Marshal(values); err == nil {
		c.shell.cache.Put(c.in.Scope.Tenant, c.key, entry)
	}
}

var errMuchSeen = errors.New("native: a script read more than is looked at again")

// look says what is at a path that a script read: a digest, empty for nothing, and when
// it was changed.
func (c *scriptCall) look(ctx context.Context, read script.Read, left *int64) (digest string, changed time.Time, err error) {
	p, err := c.shell.files.find(ctx, c.in.Root, read.Path, want{})
	if e, ok := errors.AsType[*tools.Error](err); ok && e.Code == tools.NotFound {
		return "", time.Time{}, nil
	}
	if err != nil {
		return "", time.Time{}, err
	}
	defer p.close()
	switch {
	case p.info == nil:
		return "", time.Time{}, nil
	case p.info.IsDir() != (read.Kind != script.ReadFile):
		return "", time.Time{}, fs.ErrInvalid
	case read.Kind == script.ReadFile:
		if *left -= p.info.Size(); *left < 0 {
			return "", time.Time{}, errMuchSeen
		}
		digest, err = hashTarget(ctx, p)
		return digest, p.info.ModTime(), err
	}
	dir, err := c.shell.files.openDir(p.dir, p.name, p.info)
	if err != nil {
		return "", time.Time{}, err
	}
	defer dir.Close()
	names, err := readNames(ctx, dir)
	if read.Kind == script.ReadModules {
		names = slices.DeleteFunc(names, func(name string) bool {
			return strings.Contains(name, ".") && !slices.Contains([]string{".py", ".pyc", ".so"}, filepath.Ext(name))
		})
		return sha256Of([]byte(strings.Join(names, "\x00"))), time.Time{}, err
	}
	return sha256Of([]byte(strings.Join(names, "\x00"))), p.info.ModTime(), err
}

// scriptOutput takes what a script prints: held, until it is so much that it becomes the
// body of the answer.
type scriptOutput struct {
	mu   sync.Mutex
	held bytes.Buffer   // guarded by mu
	to   *io.PipeWriter // guarded by mu; nil while it is held

	full chan struct{} // closed when there is more than is held
	from *io.PipeReader
}

func (o *scriptOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	if o.to == nil && o.held.Len()+len(p) <= maxScriptHeld {
		defer o.mu.Unlock()
		return o.held.Write(p)
	}
	if o.to == nil {
		o.from, o.to = io.Pipe()
		close(o.full)
	}
	to := o.to
	o.mu.Unlock()
	return to.Write(p)
}

// end says that nothing more comes.
func (o *scriptOutput) end(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to != nil {
		_ = o.to.CloseWithError(err) // nil is the end of the output; it returns nil
	}
}

// run runs the script. It returns when that has ended, or has printed much.
func (c *scriptCall) run(ctx context.Context) (tools.Output, error) {
	argv, input, err := c.request.Command(python)
	if err != nil {
		return tools.Output{}, err
	}
	job, err := c.shell.job(ctx, c.in, argv, ".")
	if err != nil {
		return tools.Output{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	job.Env = append(job.Env, script.Env()...)
	out := &scriptOutput{full: make(chan struct{})}
	split := script.NewSplitter(c.request.Mark, out)
	p := &printed{values: map[string]any{}, ended: make(chan struct{})}
	c.started = time.Now()
	go func() {
		defer cancel()
		outcome, err := c.shell.runner.Run(ctx, job, sandbox.Streams{Stdin: bytes.NewReader(input), Stdout: split, Stderr: &p.stderr})
		c.finish(ctx, p, out, split, outcome, runFailure(python, err))
		close(p.ended)
		out.end(p.err)
	}()
	select {
	case <-p.ended:
		return tools.Output{Values: p.values}, p.err
	case <-out.full:
	}
	return tools.Output{
		Values: p.values, BodyKey: "stdout", BodyLossy: true,
		Body: &scriptBody{Reader: io.MultiReader(&out.held, out.from), from: out.from, ended: p.ended},
	}, nil
}

// scriptBody is what a script prints while it runs.
type scriptBody struct {
	io.Reader
	from  *io.PipeReader
	ended chan struct{}
}

// Close waits for the end of the script. Unread output is lost.
func (b *scriptBody) Close() error {
	_, _ = io.Copy(io.Discard, b.from) // readers get how it ended
	<-b.ended
	return nil
}

// finish fills in the answer of a script that has ended, or why there is none.
func (c *scriptCall) finish(ctx context.Context, p *printed, out *scriptOutput, split *script.Splitter, outcome sandbox.RunOutcome, failed error) {
	reply, err := split.Reply()
	stderr, cut := p.stderr.text()
	stderr = strings.ToValidUTF8(stderr, "\uFFFD")
	long := out.to != nil
	said := ""
	if !long {
		said = strings.ToValidUTF8(out.held.String(), "\uFFFD")
	}
	switch {
	case errors.Is(failed, context.DeadlineExceeded):
		p.err = timedOut(failed, said, stderr)
	case failed != nil:
		p.err = failed
	case err != nil:
		p.err = c.noReply(err, outcome, said, stderr)
	case !reply.OK:
		p.err = c.failure(reply, said, stderr)
	}
	if p.err != nil {
		return
	}
	p.values["cached"] = false
	if p.values["result"], err = resultOf(reply); err != nil {
		p.err = tools.Errorf(tools.Failed, "%s: the result can't be read: %w", c.name, err)
		return
	}
	if !reply.HasResult && !long {
		if value, ok := jsonOf(said); ok {
			p.values["result"], said = value, ""
		}
	}
	if said != "" {
		p.values["stdout"] = said
	} else if c.function == "" && !long && p.values["result"] == nil {
		p.values["note"] = nothingPrinted(reply)
	}
	if stderr != "" {
		p.values["stderr"] = stderr
	}
	if cut {
		p.values["stderr_truncated"] = true
	}
	if len(outcome.Refused) > 0 {
		p.values["refused"] = textValues(outcome.Refused)
	} else if !long {
		c.keep(ctx, reply, p.values)
	}
}

// nothingPrinted says why a script that ran as a whole has no result.
func nothingPrinted(reply script.Reply) string {
	note := "The script ran as a whole and printed nothing."
	if len(reply.Functions) > 0 {
		note += " It defines " + strings.Join(reply.Functions, ", ") + ": give one as function to get what it returns."
	}
	return note
}

// resultOf is what a function returned; nil where none was called.
func resultOf(reply script.Reply) (any, error) {
	if !reply.HasResult {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(reply.Result))
	d.UseNumber()
	var value any
	err := d.Decode(&value)
	return value, err
}

// jsonOf is the value of a text that is JSON, an object or a list.
func jsonOf(said string) (any, bool) {
	said = strings.TrimSpace(said)
	if said == "" || said[0] != '{' && said[0] != '[' || text.ShapeOf(said).Depth > tools.MaxArgumentsDepth {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(said))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil || d.More() {
		return nil, false
	}
	return value, true
}

// failure says what went wrong in a script.
func (c *scriptCall) failure(reply script.Reply, stdout, stderr string) error {
	switch reply.Kind {
	case "function":
		return tools.Errorf(tools.NotFound, "%s: %s", c.name, reply.Message)
	case "arguments":
		return tools.Errorf(tools.InvalidArguments, "args: %s", reply.Message)
	case "result":
		return tools.Errorf(tools.Failed, "%s: %s", c.name, reply.Message)
	}
	message := reply.Type
	if reply.Message != "" {
		message += ": " + reply.Message
	}
	return tools.Errorf(tools.Failed, "%s: %s%s", c.name, text.Cut(message, maxSaid, text.Ellipsis),
		ending("", lastLines(reply.Traceback, maxTraceback))+ending("stdout:", lastLines(stdout, maxSaid))+ending("stderr:", lastLines(stderr, maxSaid)))
}

// noReply says why a script's process gave no result.
func (c *scriptCall) noReply(err error, outcome sandbox.RunOutcome, stdout, stderr string) error {
	why := err.Error()
	switch {
	case errors.Is(err, script.ErrTooLong):
		return tools.Errorf(tools.TooLarge, "%s: %s", c.name, why)
	case outcome.Limit != "":
		why = "it was ended by the limit of " + outcome.Limit
	case outcome.Signal != 0:
		why += fmt.Sprintf(" (signal %d)", outcome.Signal)
	default:
		why += fmt.Sprintf(" (exit code %d)", outcome.Exit)
	}
	return tools.Errorf(tools.Failed, "%s: %s%s", c.name, why, ending("stdout:", lastLines(stdout, maxSaid))+ending("stderr:", lastLines(stderr, maxSaid)))
}

// ending returns the script's own error lines as a part; empty without text.
func ending(title, text string) string {
	switch {
	case text == "":
		return ""
	case title == "":
		return "\n" + text
	}
	return "\n" + title + "\n" + text
}

// lastLines are the last whole lines of a text, within so many bytes.
func lastLines(s string, limit int) string {
	s = strings.TrimRight(s, "\n")
	if len(s) <= limit {
		return s
	}
	s = s[len(s)-limit:]
	if i := strings.IndexByte(s, '\n'); i >= 0 && i+1 < len(s) {
		s = s[i+1:]
	}
	return strings.ToValidUTF8(s, "")
}

package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/bridge/secret"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Sheet is what a person is shown of a call: all that it will use, nothing left out.
type Sheet struct {
	// Args are the arguments as the tool gets them, a JSON object.
	Args json.RawMessage
	// Parts are what else it will use: how and where it runs, the command, its input, the
	// files that it starts.
	Parts []tools.PreviewPart
	// Secrets are what the server knows to be secret. Its name is shown in the place of a whole
	// value; the digest, and the call, have the value. Default: it knows none.
	Secrets *secret.Mask
}

// Digest is the hash, in hex, of all that is shown: what differs in a byte has another one.
func (s Sheet) Digest() string {
	h := sha256.New()
	add := func(b []byte) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(b))) // a hash takes everything
		h.Write(b)
	}
	add(s.Args)
	for _, p := range s.Parts {
		add([]byte(p.Name))
		add(p.Content)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Check returns a *tools.Error for a sheet that is too long for a person.
func (s Sheet) Check() error {
	size := len(text.VisibleJSON(string(s.Args)))
	for _, p := range s.Parts {
		size += len(p.Name) + len(text.Visible(string(p.Content)))
	}
	if size > tools.MaxPreviewBytes {
		return tools.TooLong("the call", int64(size))
	}
	return nil
}

// Differs is the name of the first part in which two sheets differ; empty for none.
func (s Sheet) Differs(other Sheet) string {
	if string(s.Args) != string(other.Args) {
		return "arguments"
	}
	for i, p := range s.Parts {
		if i >= len(other.Parts) || other.Parts[i].Name != p.Name || string(other.Parts[i].Content) != string(p.Content) {
			return p.Name
		}
	}
	if len(other.Parts) > len(s.Parts) {
		return other.Parts[len(s.Parts)].Name
	}
	return ""
}

// Rule says what an answer for more than one call would be remembered as, with three examples
// of what else it would allow.
func Rule(r Request) (rule string, examples []string) {
	c := r.Capability
	switch c.Kind {
	case policy.KindHost:
		return fmt.Sprintf("every call may reach %s, whatever it sends there", c.Name), []string{
			fmt.Sprintf("shell:run of a command that sends all files of the workspace to %s", c.Name),
			fmt.Sprintf("%s with other arguments that downloads a program from %s", r.Tool, c.Name),
			fmt.Sprintf("python:run_script of any script that deletes or changes something at %s", c.Name),
		}
	case policy.KindRead:
		return fmt.Sprintf("every call may read %s and all that lies below it, now and later", c.Name), []string{
			fmt.Sprintf("fs:read_file of every file below %s", c.Name),
			fmt.Sprintf("shell:run of a command that copies %s into the workspace", c.Name),
			fmt.Sprintf("%s with other arguments that reads what is put into %s tomorrow", r.Tool, c.Name),
		}
	case policy.KindWrite:
		return fmt.Sprintf("every call may read and change %s and all that lies below it", c.Name), []string{
			fmt.Sprintf("fs:delete of every file below %s", c.Name),
			fmt.Sprintf("shell:run of a command that overwrites all of %s", c.Name),
			fmt.Sprintf("%s with other arguments that reads what lies in %s", r.Tool, c.Name),
		}
	}
	return fmt.Sprintf("every call of %s, whatever its arguments", c.Name), examplesOf(c.Name)
}

// examplesOf are calls of a tool.
func examplesOf(tool string) []string {
	switch tool {
	case "system:shell", "shell:run":
		return []string{
			tool + ` {"command":"rm -rf ."}`,
			tool + ` {"command":"git push --force"}`,
			tool + ` {"command":"sh any-script-that-was-written-just-before.sh"}`,
		}
	case "python:run_script":
		return []string{
			tool + " of any other script of the workspace",
			tool + " of the same script after its text was changed",
			tool + " with any other arguments or standard input",
		}
	case "fs:write_file", "fs:edit_file", "fs:delete":
		return []string{
			tool + ` {"path":"README.md"}, with any content`,
			tool + ` {"path":"src/main.py"}, with any content`,
			tool + " of any other file of the workspace that its profile does not protect",
		}
	}
	return []string{
		tool + " with other values of all its arguments",
		tool + " as often as the agent likes, at any hour",
		tool + " after a text from the web or from another tool told the agent to",
	}
}

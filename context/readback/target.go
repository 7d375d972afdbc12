package readback

import (
	"path"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// shortFolder is the short name of session.HistoryFolder.
const shortFolder = "history/"

// target is something of a log, in one of its forms, that a name leads to.
type target struct {
	number uint64 // of the step, or position of the message
	form   form
	// index chooses one of several media.
	index int
	// task is the id of a task, of formTask alone.
	task string
}

// form is what is read of a step, a message or a task.
type form int

const (
	formResult form = iota // as it was given
	formText               // for reading
	formStdout
	formStderr
	formMedia
	formStepJSON
	formStepCompact
	formMessage
	formMessageJSON
	formTask
)

// stepForms are the endings of the names of a step's forms.
func stepForms() map[string]form {
	return map[string]form{
		"": formResult, "original": formResult, "txt": formText, "stdout": formStdout, "stderr": formStderr, "media": formMedia,
		"json": formStepJSON, "compact": formStepCompact,
	}
}

// parseTarget reads the name of a step, a message or a task. Names are as prompts
// show them: "step_12" is none.
func parseTarget(name string) (target, bool) {
	if name == "" || len(name) > blob.MaxPathBytes || strings.IndexByte(name, 0) >= 0 {
		return target{}, false
	}
	if id, ok := strings.CutPrefix(name, session.TaskFolder); ok && id != "" {
		return target{form: formTask, task: id}, true
	}
	name = path.Clean(name)
	base, inHistory := strings.CutPrefix(name, session.HistoryFolder)
	if !inHistory {
		base, inHistory = strings.CutPrefix(name, shortFolder)
	}
	id, ext, dotted := strings.Cut(base, ".")
	if dotted && (!inHistory && ext != "txt" || ext == "") {
		return target{}, false
	}
	if n, ok := step.ParseID(id); ok {
		return stepTarget(n, ext)
	}
	if n, ok := session.ParseMessageID(id); ok {
		form, ok := map[string]form{"": formMessage, "txt": formMessage, "json": formMessageJSON}[ext]
		return target{number: n, form: form}, ok
	}
	return target{}, false
}

// stepTarget reads the ending of a step's name.
func stepTarget(number uint64, ext string) (target, bool) {
	t := target{number: number}
	if digits, ok := strings.CutPrefix(ext, "media"); ok && digits != "" {
		index, err := strconv.Atoi(digits)
		t.form, t.index = formMedia, index
		return t, err == nil && index >= 0 && index < step.MaxMedia && strconv.Itoa(index) == digits
	}
	form, ok := stepForms()[ext]
	t.form = form
	return t, ok
}

func (t target) isMessage() bool { return t.form == formMessage || t.form == formMessageJSON }

// path is the one name that a target is given in answers.
func (t target) path() string {
	id := session.HistoryFolder + step.ID(t.number)
	switch t.form {
	case formText:
		return id + ".txt"
	case formStdout:
		return id + ".stdout"
	case formStderr:
		return id + ".stderr"
	case formMedia:
		return id + ".media" + strconv.Itoa(t.index)
	case formStepJSON:
		return id + ".json"
	case formStepCompact:
		return id + ".compact"
	case formMessage:
		return session.HistoryFolder + session.MessageID(t.number) + ".txt"
	case formMessageJSON:
		return session.HistoryFolder + session.MessageID(t.number) + ".json"
	case formTask:
		return session.TaskFolder + t.task
	}
	return id + ".original"
}

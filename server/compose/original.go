package compose

import (
	"path"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// historyFolder is where steps and messages lie as files; historyAlias is its
// short name.
const (
	historyFolder = "workspace/history/"
	historyAlias  = "history/"
)

// original names something of a log, in one of its forms.
type original struct {
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

// stepForms are the endings of the names of a step's forms, the ones that are
// written first.
func stepForms() map[string]form {
	return map[string]form{
		"": formResult, "original": formResult, "txt": formText, "stdout": formStdout, "stderr": formStderr, "media": formMedia,
		"json": formStepJSON, "compact": formStepCompact,
	}
}

// parseOriginal reads the name of a step, a message or a task. Names are as they
// are shown: other numbers of digits are none.
func parseOriginal(name string) (original, bool) {
	if name == "" || len(name) > blob.MaxPathBytes || strings.IndexByte(name, 0) >= 0 {
		return original{}, false
	}
	if id, ok := strings.CutPrefix(name, tiers.Key("")); ok && id != "" {
		return original{form: formTask, task: id}, true
	}
	name = path.Clean(name)
	base, inHistory := strings.CutPrefix(name, historyFolder)
	if !inHistory {
		base, inHistory = strings.CutPrefix(name, historyAlias)
	}
	id, ext, dotted := strings.Cut(base, ".")
	if dotted && (!inHistory && ext != "txt" || ext == "") {
		return original{}, false
	}
	if n, ok := step.ParseID(id); ok {
		return stepOriginal(n, ext)
	}
	if n, ok := session.ParseMessageID(id); ok {
		form, ok := map[string]form{"": formMessage, "txt": formMessage, "json": formMessageJSON}[ext]
		return original{number: n, form: form}, ok
	}
	return original{}, false
}

// stepOriginal reads the ending of a step's name.
func stepOriginal(number uint64, ext string) (original, bool) {
	o := original{number: number}
	if digits, ok := strings.CutPrefix(ext, "media"); ok && digits != "" {
		index, err := strconv.Atoi(digits)
		o.form, o.index = formMedia, index
		return o, err == nil && index >= 0 && index < step.MaxMedia && strconv.Itoa(index) == digits
	}
	form, ok := stepForms()[ext]
	o.form = form
	return o, ok
}

func (o original) isMessage() bool { return o.form == formMessage || o.form == formMessageJSON }

// path is the one name that an original is given.
func (o original) path() string {
	id := historyFolder + step.ID(o.number)
	switch o.form {
	case formText:
		return id + ".txt"
	case formStdout:
		return id + ".stdout"
	case formStderr:
		return id + ".stderr"
	case formMedia:
		return id + ".media" + strconv.Itoa(o.index)
	case formStepJSON:
		return id + ".json"
	case formStepCompact:
		return id + ".compact"
	case formMessage:
		return historyFolder + session.MessageID(o.number) + ".txt"
	case formMessageJSON:
		return historyFolder + session.MessageID(o.number) + ".json"
	case formTask:
		return tiers.Key(o.task)
	}
	return id + ".original"
}

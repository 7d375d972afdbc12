package domain

import (
	"cmp"
	"path"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// historyFolder is where steps and messages lie as files; historyAlias is its
// short name.
const (
	historyFolder = "workspace/history/"
	historyAlias  = "history/"
)

// original names a step or a message of a log, in one of its forms.
type original struct {
	number uint64 // of the step, or position of the message
	form   form
}

// form is what is read of a step or message.
type form int

const (
	formResult form = iota
	formStepJSON
	formStepCompact
	formMessage
	formMessageJSON
)

// parseOriginal reads the name of a step or message. Names are as they are
// shown: other numbers of digits are none.
func parseOriginal(name string) (original, bool) {
	if name == "" || len(name) > blob.MaxPathBytes || strings.IndexByte(name, 0) >= 0 {
		return original{}, false
	}
	name = path.Clean(name)
	base, inHistory := strings.CutPrefix(name, historyFolder)
	if !inHistory {
		base, inHistory = strings.CutPrefix(name, historyAlias)
	}
	id, ext, dotted := strings.Cut(base, ".")
	if dotted && (!inHistory || ext == "") {
		return original{}, false
	}
	if n, ok := step.ParseID(id); ok {
		form, ok := map[string]form{"": formResult, "txt": formResult, "json": formStepJSON, "compact": formStepCompact}[ext]
		return original{n, form}, ok
	}
	if n, ok := session.ParseMessageID(id); ok {
		form, ok := map[string]form{"": formMessage, "txt": formMessage, "json": formMessageJSON}[ext]
		return original{n, form}, ok
	}
	return original{}, false
}

func (o original) isMessage() bool { return o.form == formMessage || o.form == formMessageJSON }

// path is the one name that an original is given.
func (o original) path() string {
	switch o.form {
	case formStepJSON:
		return historyFolder + step.ID(o.number) + ".json"
	case formStepCompact:
		return historyFolder + step.ID(o.number) + ".compact"
	case formMessage:
		return historyFolder + session.MessageID(o.number) + ".txt"
	case formMessageJSON:
		return historyFolder + session.MessageID(o.number) + ".json"
	}
	return historyFolder + step.ID(o.number) + ".txt"
}

// text is what is read, where lines make a step one line.
func (o original) text(e session.Entry, lines step.Templates) []byte {
	switch o.form {
	case formStepJSON:
		return step.Document(*e.Step)
	case formStepCompact:
		return []byte(lines.Compact(*e.Step).Summary)
	case formMessage:
		return []byte(e.Message.Text())
	case formMessageJSON:
		return session.Document(e)
	}
	return []byte(e.Step.ResultText())
}

// entry describes it as a blob is described, without a ref. It is zero when
// nothing was found.
func (o original) entry(scope kv.Scope, sessionID string, found session.Entry, lines step.Templates) blob.Entry {
	if found.Step == nil && found.Message == nil {
		return blob.Entry{}
	}
	e := blob.Entry{
		Path: o.path(), Size: int64(len(o.text(found, lines))), Kind: blob.KindText, Owner: scope.Owner,
		Time: found.Time, SessionID: cmp.Or(sessionID, session.DefaultSession),
	}
	if o.form == formStepJSON || o.form == formMessageJSON {
		e.Kind = blob.KindJSON
	}
	if found.Step != nil {
		e.StepID, e.SessionID = found.Step.ID(), found.Step.SessionID
	}
	return e
}

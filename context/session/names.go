package session

import (
	"fmt"
	"strconv"
	"strings"
)

// The folders that the steps, messages and tasks of an agent can be read in, by
// names such as workspace/history/step_012.json and task/t1. A task's name is also
// the key of its record in memory.
const (
	HistoryFolder = "workspace/history/"
	TaskFolder    = "task/"
)

// messagePrefix begins every message id.
const messagePrefix = "message_"

// MessageID returns the id of the message at a position of its session:
// "message_017", "message_1000".
func MessageID(position uint64) string { return fmt.Sprintf(messagePrefix+"%03d", position) }

// ParseMessageID returns the position of a message id, and false for anything
// that MessageID would not write. There is no message 0.
func ParseMessageID(id string) (uint64, bool) {
	digits, ok := strings.CutPrefix(id, messagePrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && MessageID(n) == id
}

package page

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/conversation"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// pagePrefix marks the page tokens of this version.
const pagePrefix = "p1."

// Token continues a listing behind a position.
func Token(position uint64) string { return pagePrefix + strconv.FormatUint(position, 36) }

// ParseToken is the inverse; no token is position 0.
func ParseToken(token string) (uint64, bool) {
	if token == "" {
		return 0, true
	}
	digits, ok := strings.CutPrefix(token, pagePrefix)
	if !ok {
		return 0, false
	}
	position, err := strconv.ParseUint(digits, 36, 64)
	return position, err == nil
}

// Prefixes mark the page tokens of a search: of one that goes on behind the line of a
// match, and of one that goes on where it was stopped.
const (
	searchTokenPrefix  = "s1."
	stoppedTokenPrefix = "s2."
)

// SearchToken continues a search.
func SearchToken(from blob.From) string {
	prefix := stoppedTokenPrefix
	if from.MidLine {
		prefix = searchTokenPrefix
	}
	return prefix + strconv.FormatInt(from.Offset, 36) + "." + strconv.FormatInt(from.Lines, 36)
}

// ParseSearchToken is the inverse; no token is the beginning.
func ParseSearchToken(token string) (blob.From, bool) {
	if token == "" {
		return blob.From{}, true
	}
	text, midLine := strings.CutPrefix(token, searchTokenPrefix)
	text, stopped := strings.CutPrefix(text, stoppedTokenPrefix)
	ok := midLine != stopped
	offset, lines, cut := strings.Cut(text, ".")
	from := blob.From{MidLine: midLine}
	var errOffset, errLines error
	from.Offset, errOffset = strconv.ParseInt(offset, 36, 64)
	from.Lines, errLines = strconv.ParseInt(lines, 36, 64)
	valid := ok && cut && errOffset == nil && errLines == nil && from.Offset >= 0 && from.Lines >= 0
	return from, valid
}

// Prefixes mark the page tokens of conversations by their order.
const (
	oldestTokenPrefix = "c1."
	newestTokenPrefix = "c2."
)

// ConversationToken continues a conversation behind a place, in one order.
func ConversationToken(at conversation.Cursor, newestFirst bool) string {
	prefix := oldestTokenPrefix
	if newestFirst {
		prefix = newestTokenPrefix
	}
	return prefix + strconv.FormatUint(at.Position, 36) + "." + strconv.FormatUint(at.Task, 36)
}

// ParseConversationToken is the inverse; no token is the beginning. A token of the
// other order is none.
func ParseConversationToken(token string, newestFirst bool) (at conversation.Cursor, ok bool) {
	if token == "" {
		return conversation.Cursor{}, true
	}
	prefix := oldestTokenPrefix
	if newestFirst {
		prefix = newestTokenPrefix
	}
	text, ok := strings.CutPrefix(token, prefix)
	position, task, cut := strings.Cut(text, ".")
	var errPosition, errTask error
	// Positions are from 0 to 2^63-1.
	at.Position, errPosition = strconv.ParseUint(position, 36, 63)
	at.Task, errTask = strconv.ParseUint(task, 36, 63)
	return at, ok && cut && errPosition == nil && errTask == nil
}

// auditTokenPrefix marks the page tokens of the audit.
const auditTokenPrefix = "a1."

// AuditToken continues a listing of the audit; empty for the zero cursor, its end.
func AuditToken(at audit.Cursor) string {
	if at == (audit.Cursor{}) {
		return ""
	}
	return auditTokenPrefix + strconv.FormatUint(at.Epoch, 36) + "." + strconv.FormatUint(at.Number, 36)
}

// ParseAuditToken is the inverse; no token is the beginning.
func ParseAuditToken(token string) (at audit.Cursor, ok bool) {
	if token == "" {
		return audit.Cursor{}, true
	}
	text, ok := strings.CutPrefix(token, auditTokenPrefix)
	epoch, number, cut := strings.Cut(text, ".")
	var errEpoch, errNumber error
	at.Epoch, errEpoch = strconv.ParseUint(epoch, 36, 64)
	at.Number, errNumber = strconv.ParseUint(number, 36, 64)
	return at, ok && cut && errEpoch == nil && errNumber == nil && at.Epoch > 0
}

// scopeTokenPrefix marks the page tokens of owners.
const scopeTokenPrefix = "o1."

// ScopeToken continues a listing of owners behind one of them; empty for the zero scope,
// its end. Whose tenant it is does not stand in it.
func ScopeToken(last kv.Scope) string {
	if last == (kv.Scope{}) {
		return ""
	}
	return scopeTokenPrefix + base64.RawURLEncoding.EncodeToString(append([]byte{byte(last.Kind)}, last.Owner...))
}

// ParseScopeToken is the inverse; no token is the zero scope.
func ParseScopeToken(token string) (last kv.Scope, ok bool) {
	if token == "" {
		return kv.Scope{}, true
	}
	text, ok := strings.CutPrefix(token, scopeTokenPrefix)
	name, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || len(name) == 0 {
		return kv.Scope{}, false
	}
	last = kv.Scope{Tenant: "any", Kind: kv.OwnerKind(name[0]), Owner: string(name[1:])}
	return last, last.Validate() == nil
}

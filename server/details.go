package server

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/vector"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// badRequestOf lists what is wrong with the fields of the request, or is nil.
func badRequestOf(err error) *errdetails.BadRequest {
	var bad errdetails.BadRequest
	for _, v := range violationsOf(err) {
		bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field: validate.Cut(v.Field, maxDescriptionBytes), Description: validate.Cut(v.Description, maxDescriptionBytes),
		})
	}
	if len(bad.FieldViolations) == 0 {
		return nil
	}
	return &bad
}

// retryOf is when a refused call may come again, or nil where that is not known.
func retryOf(err error) *errdetails.RetryInfo {
	if e, ok := errors.AsType[*throttle.LimitedError](err); ok {
		return &errdetails.RetryInfo{RetryDelay: durationpb.New(e.Retry)}
	}
	return nil
}

// violationsOf lists the fields that an error is about, if any.
func violationsOf(err error) []validate.Violation {
	if e, ok := errors.AsType[*valuesError](err); ok {
		return placed(violationsOf(e.err), valuesField)
	}
	if e, ok := errors.AsType[*memory.BatchError](err); ok {
		return placed(violationsOf(e.Err), func(field string) string { return fmt.Sprintf("records[%d].%s", e.Index, field) })
	}
	if e, ok := errors.AsType[*validate.RequestError](err); ok {
		return e.All()
	}
	if e, ok := errors.AsType[*tools.ArgumentsError](err); ok {
		out := make([]validate.Violation, len(e.Violations))
		for i, v := range e.Violations {
			out[i] = validate.Violation{Field: "arguments", Description: v.Problem}
			if v.Path != "" {
				out[i].Field += "." + v.Path
			}
		}
		return out
	}
	if field, problem := fieldOf(err); problem != "" {
		return []validate.Violation{{Field: field, Description: problem}}
	}
	return nil
}

// fieldOf is the one field that an error of a domain package is about, and what is
// wrong with it; nothing for other errors.
func fieldOf(err error) (field, problem string) {
	if e, ok := errors.AsType[*invalid.Error](err); ok {
		return e.Field, e.Problem
	}
	if e, ok := errors.AsType[*filter.Error](err); ok {
		return "filter", e.Problem
	}
	if e, ok := errors.AsType[*vector.DimensionError](err); ok {
		return "embedding", fmt.Sprintf("has %d numbers, the vectors of its space have %d", e.Got, e.Want)
	}
	if errors.Is(err, blob.ErrAmbiguous) {
		return "name", "is the beginning of several refs; give more digits"
	}
	return "", ""
}

// placed returns the violations with other paths of their fields.
func placed(violations []validate.Violation, path func(field string) string) []validate.Violation {
	out := slices.Clone(violations)
	for i := range out {
		out[i].Field = path(out[i].Field)
	}
	return out
}

// valuesError is an error of an UpdateRecordRequest, whose new values stand one
// level deeper than the fields that the domain knows them by.
type valuesError struct{ err error }

func (e *valuesError) Error() string { return e.err.Error() }

// Unwrap returns the error itself.
func (e *valuesError) Unwrap() error { return e.err }

func valuesField(field string) string {
	switch field {
	case "id", "key", "expected_version", "update_mask", "request_id":
		return field
	}
	return "record." + field
}

// detailsOf is the metadata of an error: what a program would otherwise have
// to read out of the text.
func detailsOf(err error) map[string]string {
	details := map[string]string{}
	put := func(key, value string) {
		if value != "" && len(value) <= maxDetailBytes {
			details[key] = validate.Cut(value, maxDetailBytes)
		}
	}
	number := func(key string, n int) { put(key, strconv.Itoa(n)) }
	if e, ok := errors.AsType[*tools.NotFoundError](err); ok {
		put("tool", validate.Printable(e.Name))
		put("nearest", e.Nearest)
	}
	if e, ok := errors.AsType[*places.Error](err); ok {
		put("server", validate.Printable(e.Owner.Server))
		put("address", validate.Printable(e.Owner.Address))
	}
	if e, ok := errors.AsType[*tools.ArgumentsError](err); ok {
		put("tool", e.Tool)
		put("schema", string(e.Schema))
	}
	if e, ok := errors.AsType[*tools.AgentLimitError](err); ok {
		put("limit", e.Limit)
		number("max", int(e.Max))
	}
	if e, ok := errors.AsType[*children.LimitError](err); ok {
		put("limit", "children_of_"+e.Of)
		number("max", e.Limit)
	}
	if e, ok := errors.AsType[*assemble.OverflowError](err); ok {
		put("part", e.Part)
		put("detail", validate.Printable(e.Detail))
		number("part_tokens", e.PartTokens)
		number("total_tokens", e.TotalTokens)
		number("max_tokens", e.MaxTokens)
	}
	if e, ok := errors.AsType[*assemble.TooLargeError](err); ok {
		put("limit_of", "prompt bytes")
		number("limit", e.Limit)
		put("advice", e.Advice)
	}
	if e, ok := errors.AsType[*past.GoneError](err); ok {
		put("missing", validate.Printable(e.What))
	}
	if e, ok := errors.AsType[*filter.Error](err); ok {
		number("offset", e.Offset)
	}
	if e, ok := errors.AsType[*blob.QuotaError](err); ok {
		number("used_bytes", int(e.Used))
		number("needed_bytes", int(e.Size))
		number("max_bytes", int(e.Max))
	}
	if e, ok := errors.AsType[*grants.DeniedError](err); ok {
		put("needed", e.Need.String())
		of := map[kv.OwnerKind]string{kv.OwnerUser: "user_id", kv.OwnerSpace: "space_id"}
		put(of[e.Scope.Kind], validate.Printable(e.Scope.Owner))
	}
	if e, ok := errors.AsType[*memory.OwnedError](err); ok {
		put("id", validate.Printable(e.ID))
		put("agent_id", validate.Printable(e.Agent))
	}
	if e, ok := errors.AsType[*memory.VersionError](err); ok {
		put("id", e.ID)
		number("expected_version", int(e.Expected))
		number("version", int(e.Version))
	}
	if e, ok := errors.AsType[*vector.DimensionError](err); ok {
		put("embedding_space", e.Space)
		number("dimension", e.Got)
		number("want_dimension", e.Want)
	}
	if e, ok := errors.AsType[*memory.BatchError](err); ok {
		number("index", e.Index)
	}
	if e, ok := errors.AsType[*memory.NotFoundError](err); ok {
		put("field", e.Field)
	}
	if e, ok := errors.AsType[*memory.ExistsError](err); ok {
		put("field", e.Field)
		put("id", e.ID)
	}
	if e, ok := errors.AsType[*session.TaskExistsError](err); ok {
		put("field", "task_id")
		put("id", e.ID)
	}
	if e, ok := errors.AsType[*events.PositionError](err); ok {
		put("topic", e.Topic)
		put("last_sequence", strconv.FormatUint(e.Last, 10))
	}
	if e, ok := errors.AsType[*agents.TakenError](err); ok {
		put("tool", e.Tool)
		put("agent_id", validate.Printable(e.Agent))
	}
	if e, ok := errors.AsType[*auth.ToolNotAllowedError](err); ok {
		put("tool", e.Tool)
	}
	if e, ok := errors.AsType[*share.ExhaustedError](err); ok {
		put("share", e.Pool)
		put("share_of", string(e.Whose))
		number("held", int(e.Held))
		number("total", int(e.Total))
	}
	if e, ok := errors.AsType[*throttle.LimitedError](err); ok {
		put("tool", e.Tool)
		put("rule", e.Rule.String())
		put("limit_of", string(e.Rule.Per))
	}
	if e, ok := errors.AsType[*kv.LimitError](err); ok {
		put("limit_of", e.What)
		number("limit", e.Limit)
	}
	return details
}

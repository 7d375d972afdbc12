package server

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/loom-bridge/loom-bridge/bridge/a2a"
	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/approval"
	"github.com/loom-bridge/loom-bridge/bridge/children"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/bridge/erasure/live"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/mcp"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/context/assemble"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/context/transfer"
	"github.com/loom-bridge/loom-bridge/context/turn"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/backup"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	"github.com/loom-bridge/loom-bridge/memory/vector"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/observe"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Errors of calls that are refused before they reach a domain package, and of
// streams that the server ends.
var (
	// ErrNobodyListens: the event would have no receiver.
	ErrNobodyListens = errors.New("server: nobody listens")
	// ErrOverloaded: too many calls or streams at once.
	ErrOverloaded = errors.New("server: overloaded")
	// ErrTooLarge: a message exceeds its limit.
	ErrTooLarge = errors.New("server: message too large")
	// ErrSlowConsumer: the reader of a stream took nothing for too long.
	ErrSlowConsumer = errors.New("server: slow consumer")
	// ErrShuttingDown: the server is stopping.
	ErrShuttingDown = errors.New("server: shutting down")
)

// Short names for the table below.
const (
	reasonInvalid      = loombridgev1.ErrorReason_ERROR_REASON_INVALID_REQUEST
	reasonInternal     = loombridgev1.ErrorReason_ERROR_REASON_INTERNAL
	reasonTooLarge     = loombridgev1.ErrorReason_ERROR_REASON_TOO_LARGE
	reasonOverloaded   = loombridgev1.ErrorReason_ERROR_REASON_OVERLOADED
	reasonShuttingDown = loombridgev1.ErrorReason_ERROR_REASON_SHUTTING_DOWN
)

// Sentences in place of errors that speak of the server's own affairs, such as
// file names. The log has the error itself.
const (
	publicInternal    = "internal server fault; the server's log has the cause"
	publicFull        = "the server's data directory has no room; nothing was written"
	publicOutcome     = "the store failed while writing; make the call again with the same request_id to see whether it took effect"
	publicDamaged     = "what the call needs can't be read from the server's disk"
	publicFailed      = "the store failed earlier and takes no writes until the server is started again"
	publicFenced      = "the other servers of the store took this one for dead; nothing was written, try again"
	publicUnreachable = "the server of the store does not answer; nothing was written, try again"
	publicBackup      = "a backup is being made or removed; try again when that is over"
	publicStopping    = "the server is stopping; connect again"
)

// errorRow says how an error leaves the server.
type errorRow struct {
	is     error
	code   codes.Code
	reason loombridgev1.ErrorReason
	// public replaces the error's text, which is then logged as a fault of the
	// server.
	public string
}

// errorTable is every error that a call can end with, in the order of search:
// the first row that errors.Is finds wins, so causes stand before what they
// may be wrapped in. An error without a row is a fault of the server.
func errorTable() []errorRow {
	return []errorRow{
		{ErrShuttingDown, codes.Unavailable, reasonShuttingDown, ""},
		{errLoomSlowConsumer, codes.Unavailable, loombridgev1.ErrorReason_ERROR_REASON_SLOW_CONSUMER, ""},
		{ErrSlowConsumer, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_SLOW_CONSUMER, ""},
		{context.DeadlineExceeded, codes.DeadlineExceeded, loombridgev1.ErrorReason_ERROR_REASON_DEADLINE_EXCEEDED, ""},
		{context.Canceled, codes.Canceled, loombridgev1.ErrorReason_ERROR_REASON_CANCELLED, ""},

		{validate.ErrInvalidRequest, codes.InvalidArgument, reasonInvalid, ""},
		{auth.ErrUnauthenticated, codes.Unauthenticated, loombridgev1.ErrorReason_ERROR_REASON_UNAUTHENTICATED, ""},
		{auth.ErrAgentNotOwned, codes.PermissionDenied, loombridgev1.ErrorReason_ERROR_REASON_AGENT_NOT_OWNED, ""},
		{auth.ErrToolNotAllowed, codes.PermissionDenied, loombridgev1.ErrorReason_ERROR_REASON_TOOL_NOT_ALLOWED, ""},
		{ErrNobodyListens, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_NOBODY_LISTENS, ""},
		{ErrOverloaded, codes.Unavailable, reasonOverloaded, ""},
		{share.ErrQuota, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED, ""},
		{share.ErrExhausted, codes.Unavailable, reasonOverloaded, ""},
		{throttle.ErrLimited, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_TOOL_LIMIT_REACHED, ""},
		{ErrTooLarge, codes.ResourceExhausted, reasonTooLarge, ""},

		{kv.ErrFull, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_STORAGE_FULL, publicFull},
		{kv.ErrUnknownOutcome, codes.Internal, loombridgev1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN, publicOutcome},
		{kv.ErrFailed, codes.Unavailable, loombridgev1.ErrorReason_ERROR_REASON_STORE_FAILED, publicFailed},
		{kv.ErrFenced, codes.Unavailable, loombridgev1.ErrorReason_ERROR_REASON_STORE_UNREACHABLE, publicFenced},
		{kv.ErrUnreachable, codes.Unavailable, loombridgev1.ErrorReason_ERROR_REASON_STORE_UNREACHABLE, publicUnreachable},
		{kv.ErrDamaged, codes.DataLoss, loombridgev1.ErrorReason_ERROR_REASON_STORE_DAMAGED, publicDamaged},
		{kv.ErrRequestReused, codes.AlreadyExists, loombridgev1.ErrorReason_ERROR_REASON_REQUEST_ID_REUSED, ""},
		{kv.ErrLimit, codes.ResourceExhausted, reasonTooLarge, ""},
		{kv.ErrConflict, codes.Aborted, reasonOverloaded, ""},
		{kv.ErrTooOld, codes.Unavailable, reasonOverloaded, ""}, // only where the process stood still again and again
		{kv.ErrClosed, codes.Unavailable, reasonShuttingDown, publicStopping},
		{kv.ErrBadScope, codes.InvalidArgument, reasonInvalid, ""},

		{erasure.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{erasure.ErrNothing, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_SUBJECT_NOT_FOUND, ""},
		{erasure.ErrTooMany, codes.ResourceExhausted, reasonTooLarge, ""},
		{live.ErrErasing, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_BEING_ERASED, ""},
		{live.ErrBusy, codes.Aborted, loombridgev1.ErrorReason_ERROR_REASON_ERASURE_RUNNING, ""},
		{live.ErrInUse, codes.Aborted, loombridgev1.ErrorReason_ERROR_REASON_SUBJECT_IN_USE, ""},
		{live.ErrShared, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_STORE_SHARED, ""},
		{live.ErrLeft, codes.Aborted, loombridgev1.ErrorReason_ERROR_REASON_SUBJECT_IN_USE, ""},
		{live.ErrClosed, codes.Unavailable, reasonShuttingDown, publicStopping},

		{grants.ErrDenied, codes.PermissionDenied, loombridgev1.ErrorReason_ERROR_REASON_ACCESS_DENIED, ""},
		{grants.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{grants.ErrExists, codes.AlreadyExists, loombridgev1.ErrorReason_ERROR_REASON_SPACE_EXISTS, ""},
		{grants.ErrLastAdmin, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_LAST_ADMIN, ""},
		{grants.ErrNotFound, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_GRANT_NOT_FOUND, ""},
		{grants.ErrFull, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED, ""},
		{grants.ErrClosed, codes.Unavailable, reasonShuttingDown, publicStopping},

		{relations.ErrFull, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED, ""},
		{memory.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{memory.ErrPinned, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED, ""},
		{filter.ErrInvalid, codes.InvalidArgument, loombridgev1.ErrorReason_ERROR_REASON_INVALID_FILTER, ""},
		{memory.ErrInstructs, codes.PermissionDenied, loombridgev1.ErrorReason_ERROR_REASON_ACCESS_DENIED, ""},
		{memory.ErrNotOwned, codes.PermissionDenied, loombridgev1.ErrorReason_ERROR_REASON_AGENT_NOT_OWNED, ""},
		{memory.ErrNotFound, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_RECORD_NOT_FOUND, ""},
		{memory.ErrExists, codes.AlreadyExists, loombridgev1.ErrorReason_ERROR_REASON_RECORD_EXISTS, ""},
		{memory.ErrVersionConflict, codes.Aborted, loombridgev1.ErrorReason_ERROR_REASON_VERSION_CONFLICT, ""},
		{memory.ErrPositionGone, codes.OutOfRange, loombridgev1.ErrorReason_ERROR_REASON_POSITION_GONE, ""},
		{record.ErrLine, codes.InvalidArgument, reasonInvalid, ""},
		{memory.ErrNoEmbedder, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_NO_EMBEDDER, ""},
		{memory.ErrEmbedder, codes.Unavailable, loombridgev1.ErrorReason_ERROR_REASON_EMBEDDER_UNAVAILABLE, ""},
		{vector.ErrDimension, codes.InvalidArgument, loombridgev1.ErrorReason_ERROR_REASON_EMBEDDING_MISMATCH, ""},
		{vector.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{vector.ErrTooManySpaces, codes.ResourceExhausted, reasonTooLarge, ""},
		{vector.ErrFull, codes.ResourceExhausted, reasonTooLarge, ""},
		{memory.ErrClosed, codes.Unavailable, reasonShuttingDown, publicStopping},

		{session.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{session.ErrSnapshotNotFound, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_SNAPSHOT_NOT_FOUND, ""},
		{assemble.ErrNoRenewal, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_NO_RENEWAL, ""},
		{session.ErrStepNotFound, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_STEP_NOT_FOUND, ""},
		{session.ErrTaskNotFound, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_RECORD_NOT_FOUND, ""},
		{session.ErrExists, codes.AlreadyExists, loombridgev1.ErrorReason_ERROR_REASON_RECORD_EXISTS, ""},
		{blob.ErrExists, codes.AlreadyExists, loombridgev1.ErrorReason_ERROR_REASON_RECORD_EXISTS, ""},
		{transfer.ErrLine, codes.InvalidArgument, reasonInvalid, ""},
		{transfer.ErrBusy, codes.ResourceExhausted, reasonOverloaded, ""},
		{session.ErrPart, codes.InvalidArgument, reasonInvalid, ""},
		{session.ErrTooLong, codes.ResourceExhausted, reasonTooLarge, ""},
		{session.ErrTaskExists, codes.AlreadyExists, loombridgev1.ErrorReason_ERROR_REASON_RECORD_EXISTS, ""},
		{session.ErrNothingToUndo, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_NOTHING_TO_UNDO, ""},
		{session.ErrFoldsChanged, codes.Aborted, reasonOverloaded, ""},
		{blob.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{blob.ErrCollected, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_BLOB_COLLECTED, ""},
		{blob.ErrNotFound, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_BLOB_NOT_FOUND, ""},
		{blob.ErrAmbiguous, codes.InvalidArgument, reasonInvalid, ""},
		{blob.ErrDamaged, codes.DataLoss, loombridgev1.ErrorReason_ERROR_REASON_BLOB_DAMAGED, ""},
		{blob.ErrTooLarge, codes.ResourceExhausted, reasonTooLarge, ""},
		{turn.ErrBusy, codes.Unavailable, reasonOverloaded, ""},
		{blob.ErrQuota, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_BLOB_QUOTA_EXCEEDED, ""},
		{tokens.ErrTooLarge, codes.ResourceExhausted, reasonTooLarge, ""},
		{assemble.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{settings.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{working.ErrTooLarge, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_WORKING_TOO_LARGE, ""},
		{working.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{assemble.ErrTooLarge, codes.ResourceExhausted, reasonTooLarge, ""},
		{past.ErrGone, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_PROMPT_GONE, ""},
		{assemble.ErrPromptUnknown, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_PROMPT_UNKNOWN, ""},
		{assemble.ErrRefusedAgain, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_CONTEXT_OVERFLOW, ""},
		{assemble.ErrOverflow, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_CONTEXT_OVERFLOW, ""},

		{approval.ErrNotFound, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_APPROVAL_NOT_FOUND, ""},
		{approval.ErrNotAllowed, codes.PermissionDenied, loombridgev1.ErrorReason_ERROR_REASON_APPROVAL_NOT_ALLOWED, ""},
		{auth.ErrNotOperator, codes.PermissionDenied, loombridgev1.ErrorReason_ERROR_REASON_OPERATOR_REQUIRED, ""},
		{errNoBackups, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_NO_BACKUP_FOLDER, ""},
		{backup.ErrBusy, codes.Aborted, loombridgev1.ErrorReason_ERROR_REASON_BACKUP_RUNNING, publicBackup},
		{auth.ErrNotApprover, codes.PermissionDenied, loombridgev1.ErrorReason_ERROR_REASON_APPROVAL_NOT_ALLOWED, ""},
		{mcp.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{mcp.ErrNotFound, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_MCP_SERVER_NOT_FOUND, ""},
		{mcp.ErrExists, codes.AlreadyExists, loombridgev1.ErrorReason_ERROR_REASON_MCP_SERVER_EXISTS, ""},
		{mcp.ErrConfigured, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_MCP_SERVER_CONFIGURED, ""},
		{mcp.ErrTooMany, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED, ""},
		{mcp.ErrClosed, codes.Unavailable, reasonShuttingDown, publicStopping},
		{tools.ErrToolNotFound, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_TOOL_NOT_FOUND, ""},
		{tools.ErrInvalidArguments, codes.InvalidArgument, loombridgev1.ErrorReason_ERROR_REASON_INVALID_ARGUMENTS, ""},

		{tools.ErrAgentLimit, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_AGENT_LIMIT_EXCEEDED, ""},
		{children.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{children.ErrExists, codes.AlreadyExists, loombridgev1.ErrorReason_ERROR_REASON_AGENT_EXISTS, ""},
		{children.ErrDepth, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_MAX_DEPTH_EXCEEDED, ""},
		{children.ErrTooMany, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_AGENT_LIMIT_EXCEEDED, ""},
		{children.ErrNotChild, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_AGENT_NOT_FOUND, ""},
		{children.ErrEnded, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_AGENT_ENDED, ""},
		{children.ErrForkGone, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_PROMPT_GONE, ""},

		{hand.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{hand.ErrElsewhere, codes.Aborted, loombridgev1.ErrorReason_ERROR_REASON_REQUEST_ELSEWHERE, ""},
		{places.ErrAway, codes.Unavailable, loombridgev1.ErrorReason_ERROR_REASON_WORKSPACE_AWAY, ""},
		{places.ErrUnjoined, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_WORKSPACE_ELSEWHERE, ""},
		{places.ErrLost, codes.Internal, loombridgev1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN, ""},
		{places.ErrUnknown, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_SERVER_NOT_FOUND, ""},
		{places.ErrNowhere, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_WORKSPACE_ELSEWHERE, ""},
		{mesh.ErrBusy, codes.Unavailable, reasonOverloaded, ""},
		{mesh.ErrTooLarge, codes.ResourceExhausted, reasonTooLarge, ""},
		{hand.ErrClosed, codes.Unavailable, reasonShuttingDown, publicStopping},

		{events.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{a2a.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{a2a.ErrNotFound, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_RECORD_NOT_FOUND, ""},
		{a2a.ErrClosed, codes.FailedPrecondition, loombridgev1.ErrorReason_ERROR_REASON_NOBODY_LISTENS, ""},
		{a2a.ErrFull, codes.ResourceExhausted, reasonTooLarge, ""},
		{messages.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{messages.ErrExists, codes.AlreadyExists, loombridgev1.ErrorReason_ERROR_REASON_RECORD_EXISTS, ""},
		{messages.ErrFull, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED, ""},
		{topics.ErrReserved, codes.InvalidArgument, loombridgev1.ErrorReason_ERROR_REASON_RESERVED_TOPIC, ""},
		{events.ErrNotOwned, codes.PermissionDenied, loombridgev1.ErrorReason_ERROR_REASON_AGENT_NOT_OWNED, ""},
		{events.ErrPositionUnknown, codes.OutOfRange, loombridgev1.ErrorReason_ERROR_REASON_POSITION_UNKNOWN, ""},
		{share.ErrLimit, codes.Unavailable, reasonOverloaded, ""},
		{events.ErrClosed, codes.Unavailable, reasonShuttingDown, publicStopping},
		{events.ErrSlowSubscriber, codes.ResourceExhausted, loombridgev1.ErrorReason_ERROR_REASON_SLOW_CONSUMER, ""},
		{events.ErrSubscriptionClosed, codes.Canceled, loombridgev1.ErrorReason_ERROR_REASON_CANCELLED, ""},

		{agents.ErrInvalid, codes.InvalidArgument, reasonInvalid, ""},
		{agents.ErrTaken, codes.AlreadyExists, loombridgev1.ErrorReason_ERROR_REASON_TOOL_NAME_TAKEN, ""},
		{agents.ErrBusy, codes.Unavailable, reasonOverloaded, ""},
		{agents.ErrClosed, codes.Unavailable, reasonShuttingDown, publicStopping},
	}
}

// classify finds the row of an error.
func classify(ctx context.Context, err error) errorRow {
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), ErrShuttingDown) {
		err = ErrShuttingDown
	}
	if limit := new(kv.LimitError); errors.As(err, &limit) && limit.What == "queue" {
		return errorRow{is: err, code: codes.Unavailable, reason: reasonOverloaded}
	}
	for _, row := range errorTable() {
		if errors.Is(err, row.is) {
			return row
		}
	}
	return errorRow{is: err, code: codes.Internal, reason: reasonInternal, public: publicInternal}
}

// publicText is what the error may be called outside the server.
func publicText(err error) string {
	if row := classify(context.Background(), err); row.public != "" {
		return row.public
	}
	return err.Error()
}

// errorDomain is the domain of every google.rpc.ErrorInfo of this API.
const errorDomain = "loombridge.v1"

// A status travels in HTTP/2 trailers, of which some clients (everything on
// gRPC's C core) take 8 KiB by default. It is sent twice there: as text and,
// with its details, in base64.
const (
	// maxMessageBytes bounds the text, which is percent-encoded.
	maxMessageBytes = 640
	// maxStatusBytes bounds text and details together.
	maxStatusBytes = 4 * kib
	// maxDescriptionBytes bounds the text of one field violation.
	maxDescriptionBytes = 256
	// maxDetailBytes bounds one value of the metadata.
	maxDetailBytes = 2 * kib
)

// failureOf converts an error of a handler into a *observe.CallError. A status that a
// library of gRPC's own made (health, reflection) passes as it is.
func failureOf(ctx context.Context, err error) error {
	if _, isStatus := status.FromError(err); isStatus {
		return err
	}
	row := classify(ctx, err)
	text := row.public
	if text == "" {
		text = err.Error()
	}
	info := &errdetails.ErrorInfo{Domain: errorDomain, Reason: observe.ReasonName(row.reason), Metadata: detailsOf(err)}
	details := []protoadapt.MessageV1{protoadapt.MessageV1Of(info)}
	if request := badRequestOf(err); request != nil {
		details = append(details, protoadapt.MessageV1Of(request))
	}
	if retry := retryOf(err); retry != nil {
		details = append(details, protoadapt.MessageV1Of(retry))
	}
	return &observe.CallError{Status: newStatus(row.code, text, details), Cause: err, Hidden: row.public != ""}
}

func newStatus(code codes.Code, text string, details []protoadapt.MessageV1) *status.Status {
	bare := status.New(code, validate.Cut(text, maxMessageBytes))
	full, err := bare.WithDetails(details...)
	if err != nil {
		return bare
	}
	return status.FromProto(fit(full.Proto(), details))
}

// fit drops the longest metadata and the last violations until the status has
// a size that every client takes.
func fit(p *spb.Status, details []protoadapt.MessageV1) *spb.Status {
	for proto.Size(p) > maxStatusBytes && shrink(details) {
		smaller, err := status.New(codes.Code(p.GetCode()), p.GetMessage()).WithDetails(details...)
		if err != nil {
			return p
		}
		p = smaller.Proto()
	}
	return p
}

func shrink(details []protoadapt.MessageV1) bool {
	for _, d := range details {
		switch d := protoadapt.MessageV2Of(d).(type) {
		case *errdetails.BadRequest:
			if n := len(d.GetFieldViolations()); n > 1 {
				d.FieldViolations = d.GetFieldViolations()[:n/2]
				return true
			}
		case *errdetails.ErrorInfo:
			if key := longest(d.GetMetadata()); key != "" {
				delete(d.Metadata, key)
				return true
			}
		}
	}
	return false
}

func longest(m map[string]string) (key string) {
	for k, v := range m {
		if key == "" || len(v) > len(m[key]) {
			key = k
		}
	}
	return key
}

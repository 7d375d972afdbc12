package web

import (
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Refuse answers with a google.rpc.Status in JSON for a request that reaches no call. The
// problem completes the sentence "{field} …".
func Refuse(w http.ResponseWriter, r *http.Request, code int, field, problem string) {
	write(w, code, server.StatusOf(r.Context(), validate.Refuse(field, problem)), codeOf(code))
}

// RefuseError answers with the status that a call with this error ends with.
func RefuseError(w http.ResponseWriter, r *http.Request, err error) {
	Fail(w, server.StatusOf(r.Context(), err))
}

// Fail answers with the status of a call, and with the code of HTTP that stands for it.
func Fail(w http.ResponseWriter, s *status.Status) {
	code := runtime.HTTPStatusFromCode(s.Code())
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			seconds := math.Ceil(d.GetRetryDelay().AsDuration().Seconds())
			w.Header().Set("Retry-After", strconv.Itoa(int(max(seconds, 1))))
		case *errdetails.ErrorInfo:
			if d.GetReason() == tooLarge {
				code = http.StatusRequestEntityTooLarge
			}
		}
	}
	write(w, code, s, s.Code())
}

// tooLarge is the reason of a message beyond its limit.
const tooLarge = "TOO_LARGE"

// codeOf is the code of gRPC that a request has which is refused with a code of HTTP.
func codeOf(code int) codes.Code {
	switch code {
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.NotFound
	case http.StatusMethodNotAllowed:
		return codes.Unimplemented
	}
	return codes.InvalidArgument
}

func write(w http.ResponseWriter, code int, s *status.Status, as codes.Code) {
	p := s.Proto()
	p.Code = int32(as)
	body, err := protojson.Marshal(p)
	if err != nil { // a detail of a type that is not linked in
		p.Details = nil
		body, _ = protojson.Marshal(p)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // who does not read it has left
}

// Status is the status of an error as a stream ends with it.
func Status(ctx context.Context, err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return server.StatusOf(ctx, err)
}

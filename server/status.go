package server

import (
	"context"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/loom-bridge/loom-bridge/server/observe"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

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

// failureOf turns an error of a handler into a *observe.CallError. A status that a
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

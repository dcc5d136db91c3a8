package conversation

import (
	"bytes"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"time"

	"github.com/parley-run/parley/identity"
)

// Topic is the inbox topic on which a conversation receives its envelopes.
const Topic = "conversation:turn"

// Kind says what an envelope asks for (C-12.3).
type Kind string

const (
	KindUser  Kind = "user"  // a person says something
	KindClose Kind = "close" // the conversation is to end
	KindStop  Kind = "stop"  // a turn is to end (C-46)

	KindNotice Kind = "notice" // the house says something (C-45)
)

// body is what the host signs: a message counts only inside one (C-12.1,
// C-12.2). Its canonical JSON is what the signature is made over.
type body struct {
	ConversationID string             `json:"conversationId"`
	Kind           Kind               `json:"kind"`
	ID             string             `json:"id"`  // the asker's SenderKey of the message id (C-12.4)
	IssuedAt       int64              `json:"iat"` // milliseconds
	Text           string             `json:"text,omitzero"`
	Asker          *identity.Identity `json:"asker,omitzero"`  // nil where the conversation is ownerless
	EditOf         *int               `json:"editOf,omitzero"` // ord of an earlier user record (C-27.1)
	Turn           *int               `json:"turn,omitzero"`   // of a stop: the number of the turn

	// Of a notice: what it is about, and in a shared conversation for whom, and what
	// its text has touched; nil classes are no statement (C-45.7, C-45.8).
	Topic   NoticeTopic        `json:"topic,omitzero"`
	For     *identity.Identity `json:"for,omitzero"`
	Classes []string           `json:"classes,omitzero"`
}

// speaker is who takes part if the envelope counts: its asker, or for whom a
// notice was made.
func (b body) speaker() *identity.Identity {
	if b.Kind == KindNotice {
		return b.For
	}
	return b.Asker
}

// envelope is the wire form of a message (C-12.6).
type envelope struct {
	Body      jsontext.Value `json:"body"`
	Signature string         `json:"sig"`
}

// newBody makes what all envelopes have in common. asker is nil in an ownerless
// conversation. The same message id of the same asker gives the same idempotency
// key, whatever the time (C-12.9).
func newBody(kind Kind, conversationID string, asker *identity.Identity, messageID string, now time.Time) body {
	return body{
		ConversationID: conversationID, Kind: kind, ID: senderKey(asker, messageID),
		IssuedAt: now.UnixMilli(), Asker: asker,
	}
}

// senderKey is the idempotency key of a message; nobody's hashes null for each
// field (C-23.6).
func senderKey(asker *identity.Identity, messageID string) string {
	if asker == nil {
		return identity.Identity{}.SenderKey(messageID)
	}
	return asker.SenderKey(messageID)
}

// seal signs a body. It panics on a body that has no JSON form: its texts were
// checked when they came in.
func (k Keys) seal(b body) jsontext.Value {
	if k.IsZero() {
		panic("conversation: an envelope is signed without a key")
	}
	raw, err := json.Marshal(b)
	if err == nil {
		err = (*jsontext.Value)(&raw).Canonicalize()
	}
	if err != nil {
		panic(fmt.Sprintf("conversation: encode an envelope: %v", err))
	}
	sealed, err := json.Marshal(envelope{Body: raw, Signature: k.signature(raw)})
	if err != nil {
		panic(fmt.Sprintf("conversation: encode an envelope: %v", err))
	}
	return sealed
}

// maxEnvelopeBytes is the size of the largest envelope that a client can sign:
// every byte of its texts escaped, and room for what stands around them.
func maxEnvelopeBytes(maxTurnChars int) int { return 6*maxTurnChars + 8<<10 }

// maxEnvelopeDepth is more than an envelope is nested. What is deeper could not
// be nested into a carry.
const maxEnvelopeDepth = 16

// maxInteger is the largest integer of which every JSON parser, and the canonical
// form that is signed, has all digits.
const maxInteger = 1<<53 - 1

// isDeep reports whether a JSON value is nested deeper than any envelope.
func isDeep(value jsontext.Value) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return err != io.EOF
		}
		if dec.StackDepth() > maxEnvelopeDepth {
			return true
		}
	}
}

// split takes a payload apart, and reports whether it is a JSON object. An
// object that is not exactly a body and a signature has no signature.
func split(payload jsontext.Value) (e envelope, object bool) {
	if payload.Kind() != '{' {
		return envelope{}, false
	}
	if err := json.Unmarshal(payload, &e, json.RejectUnknownMembers(true)); err != nil {
		return envelope{}, true
	}
	return e, true
}

// verify reports whether the envelope's body was signed with one of the keys,
// whatever its shape.
func (k Keys) verify(e envelope) bool {
	canonical := e.Body.Clone()
	if len(canonical) == 0 || canonical.Canonicalize() != nil {
		return false
	}
	return k.verifies(canonical, e.Signature)
}

// read decodes a body and reports whether its shape is right; the length of
// its text is not judged here. What could be decoded is returned in any case.
func (e envelope) read() (b body, ok bool) {
	if json.Unmarshal(e.Body, &b, json.RejectUnknownMembers(true)) != nil {
		return body{}, false
	}
	if b.Asker != nil && b.Asker.Validate() != nil {
		return body{}, false
	}
	ok = isSenderKey(b.ID) && 0 < b.IssuedAt && b.IssuedAt <= maxInteger
	positive := func(n *int) bool { return n == nil || *n > 0 }
	if b.Kind == KindNotice {
		return b, ok && b.isNotice()
	}
	ok = ok && b.Topic == "" && b.For == nil && b.Classes == nil
	switch b.Kind {
	case KindUser:
		ok = ok && b.Text != "" && positive(b.EditOf) && b.Turn == nil
	case KindClose:
		ok = ok && b.Text == "" && b.EditOf == nil && b.Turn == nil
	case KindStop:
		ok = ok && b.Text == "" && b.EditOf == nil && b.Turn != nil && positive(b.Turn)
	default:
		ok = false
	}
	return b, ok
}

// isSenderKey reports whether s has the form of a sender's key.
func isSenderKey(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32 && hex.EncodeToString(raw) == s
}

package conversation

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/parley-run/parley/fault"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
	"github.com/parley-run/parley/taint"
)

// NoticeTopic says what a notice is about: a word of a closed list (C-45.9).
type NoticeTopic string

// TopicLease is that of a part of the body which has become free for a
// conversation that asked for it.
const TopicLease NoticeTopic = "lease"

// topics is the closed list.
var topics = []NoticeTopic{TopicLease}

func (t NoticeTopic) known() bool { return slices.Contains(topics, t) }

const (
	// MaxNoticeChars is the longest text of a notice, in code points (C-45.9).
	MaxNoticeChars = 4000
	// noticeReserve is the room that notices have in a queue beyond that of
	// messages, and in a shared conversation at all.
	noticeReserve = 64
)

// ErrInvalidNotice says that a notice is outside its bounds, or for nobody.
var ErrInvalidNotice = fault.New("InvalidNotice", "invalid notice")

// Notice is something that the rest of the house tells a conversation (C-45). It
// waits for its turn, which runs with the rights of the conversation's owner, and
// confers none of its own (C-45.6, C-45.7).
type Notice struct {
	ID    string // makes a repeat a duplicate; a random one if empty
	Topic NoticeTopic
	Text  string // what the model is told, fenced as text that is not ours

	// For is the participant of a shared conversation for whom it was made, and as
	// whom its turn runs while they are one. Nil in one of one owner.
	For *identity.Identity
	// Classes is what its text has touched, in a shared conversation: none if empty
	// and not nil; nil is no statement, which is [Unclassified] (C-45.8).
	Classes []string
}

// Notifier wakes conversations. It is for the host's own code and for no route
// (C-45.2).
type Notifier struct{ client *Client }

// NewNotifier makes one that writes to the client's conversations.
func NewNotifier(client *Client) *Notifier { return &Notifier{client} }

// Notify puts a notice into a conversation's queue. It is durable when Notify
// returns, and a repeat with the same ID is delivered once.
//
// Errors: [ErrNotFound], [ErrInvalidNotice], [ErrClosed], [ErrQueueFull].
func (n *Notifier) Notify(ctx context.Context, conversation string, notice Notice) error {
	if !idPattern.MatchString(conversation) {
		return ErrNotFound
	}
	k, err := n.client.readOwner(ctx, conversation)
	if err != nil {
		return err
	}
	if notice.ID == "" {
		notice.ID = kernel.NewID()
	}
	b := newBody(KindNotice, conversation, nil, notice.ID, time.Now())
	b.ID = n.sender().SenderKey(notice.ID)
	b.Text, b.Topic, b.For, b.Classes = notice.Text, notice.Topic, notice.For, notice.Classes
	if b.Classes != nil {
		b.Classes = append([]string{}, union(b.Classes)...)
	}
	if !b.isNotice() || k.shared != (b.For != nil) || len(notice.ID) > MaxMessageIDBytes {
		return ErrInvalidNotice
	}
	a := access{known: k, client: n.client, host: true}
	if k.shared {
		if a.roster, err = n.client.roster(ctx, conversation); err != nil {
			return err
		}
	}
	if err := n.checkRoom(ctx, a, b); err != nil {
		return err
	}
	return n.client.send(ctx, a, b, b.ID)
}

// sender is the house's own identity (C-45.1).
func (n *Notifier) sender() identity.Identity {
	if n.client.shared != nil {
		return n.client.shared.Service
	}
	return identity.Identity{Actor: "parley:service"}
}

// checkRoom bounds the notices that wait.
func (n *Notifier) checkRoom(ctx context.Context, a access, b body) error {
	if !a.shared {
		return n.client.checkQueue(ctx, a, b.ConversationID, maxWaiting+noticeReserve)
	}
	waiting := 0
	err := n.client.eachWaiting(ctx, a.known, b.ConversationID, func(b body) bool {
		if b.Kind == KindNotice {
			waiting++
		}
		return waiting < noticeReserve
	})
	if err == nil && waiting == noticeReserve {
		err = ErrQueueFull
	}
	return err
}

// isNotice reports whether a body has the shape of a notice.
func (b body) isNotice() bool {
	return b.Kind == KindNotice && b.Asker == nil && b.EditOf == nil && b.Turn == nil && b.Topic.known() &&
		b.Text != "" && utf8.ValidString(b.Text) && utf8.RuneCountInString(b.Text) <= MaxNoticeChars &&
		(b.For == nil || b.For.Validate() == nil) && validClasses(b.Classes)
}

// role is whose word an envelope is.
func (b body) role() Role {
	if b.Kind == KindNotice {
		return RoleNotice
	}
	return RoleUser
}

// said is what an envelope says, as a prompt has it (C-13.17, C-45.5).
func (b body) said() taint.Text {
	if b.Kind == KindNotice {
		return taint.Tainted(b.Text, taint.OriginNotice)
	}
	return taint.Tainted(b.Text, taint.OriginUser)
}

// isSaid reports whether a text can be what an envelope says.
func isSaid(text taint.Text) bool {
	return text.Origin() == taint.OriginUser || text.Origin() == taint.OriginNotice
}

// stated is the classes that an envelope brings into a shared conversation
// (C-45.8).
func (b body) stated() []string {
	if b.Kind == KindNotice && b.Classes == nil {
		return []string{Unclassified}
	}
	return b.Classes
}

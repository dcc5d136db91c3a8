-- +goose Up
-- An ordinary rowid table keeps events in the order of their writing, so that
-- a group of them touches few pages; only the index is spread over streams.
create table event (
	stream text    not null,
	seq    integer not null, -- 0, 1, 2, … without gaps
	kind   text    not null,
	id     text    not null,
	time   integer not null, -- milliseconds since 1970, UTC
	data   text              -- one JSON value, or null
) strict;

create unique index event_place on event (stream, seq);

-- The directory can be rebuilt from the events.
create table row (
	space text not null,
	key   text not null,
	sort  text not null,
	data  text,
	primary key (space, key)
) strict, without rowid;

create index row_order on row (space, sort, key);

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The history of a path and the differences between revisions, with the shipped
# configuration, before and after the repo becomes private, moves, is deleted
# and is created again: nothing of the former repo can be read any more, not
# even with a cursor of it.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Pages;

start_pages();

create('m', 0);
commit('m', 'one', 'a.txt' => "a\n");
commit('m', 'two', 'a.txt' => "b\n", 'p.txt' => "x\n");

my @id = map { $_->{id} }
	@{ $t->get('/api/models/alice/m/commits/main')->json() };

is(all('m'), '200 200 200 200', 'a public repo');
is($t->get("/api/models/alice/m/$_")->header_value('Cache-Control'),
	'no-store', "$_: nobody keeps it")
	for 'commits/main/a.txt', "changes/main?base=$id[1]";

my ($next) = $t->get('/api/models/alice/m/changes/main?base=&limit=1')
	->header_value('Link') =~ m!<http://[^/]+([^>]+)>!;

is($t->get($next)->{status}, 200, 'the next page');
is(change('PUT', 'models/alice/m/settings', '{"private":true}'), 200,
	'the repo becomes private');
is(all('m'), '404 404 404 404', 'hidden at once');
is($t->get($next)->{status}, 404, 'the next page is hidden');
is(all('m', \%alice), '200 200 200 200', 'the owner reads on');
is($t->get($next, \%alice)->{status}, 200, 'and the next page');

is(change('POST', 'repos/move', '{"fromRepo":"alice/m","toRepo":"alice/n"}'),
	200, 'the repo moves');
is(all($_), '404 404 404 404', "$_: a stranger") for 'm', 'n';
is(all('m', \%alice), '307 307 307 307', 'the owner is redirected');
is(all('n', \%alice), '200 200 200 200', 'and reads on');

is(change('DELETE', 'repos/delete', '{"name":"n"}'), 200, 'deleted');
create('n', 0);
is($t->get("/api/models/alice/n/changes/main?base=$id[0]", \%alice)->{status},
	404, 'no commit of the former repo');
is($t->get('/api/models/alice/n/commits/main/a.txt')->{body}, '[]',
	'no history of its file');

$t->done();

sub all {
	my ($name, $headers) = @_;

	return join(' ', map { $t->get("/api/models/alice/$name/$_", $headers)
		->{status} } 'commits/main/a.txt', "changes/main?base=$id[1]",
		'changes/main?base=', 'commits/main?until=2100-01-01');
}

sub change {
	my ($method, $path, $body) = @_;

	return $t->http($method, "/api/$path", { %alice,
		'Content-Type' => 'application/json' }, \$body)->{status};
}

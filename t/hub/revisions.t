#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# How a revision is resolved to a commit: each row of the table in docs/hub.md,
# "Revisions", in each route that takes a revision.  A commit id is always
# resolved to its commit, even if an older version has allowed branches or tags
# with such names.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ root slurp /;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $t = Test::Xet->new(log => 'info',
	http => Test::Xet::Token::token_directive(), locations => <<'EOC');
location / {
            xet_hub on;
            xet_auth off;
            xet_api_base /cas;
        }

        %%CAS%%
EOC

$t->token_key();
$t->run();

my $json = JSON::PP->new()->canonical();

# --------------------------------------------------------------------------
# Commits "one" to "five" have d/f.txt, which contains the commit's name.
# Branches and tags with allowed names are created by requests; the others are
# inserted into the database, as if by an older version.

post('/api/repos/create', { name => 'm' });

my (%oid, %label);

for my $label (qw/ one two three four five /) {
	my $r = commit('main', { key => 'file', value => { path => 'd/f.txt',
		encoding => 'base64',
		content => encode_base64($label, '') } });

	is($r->{status}, 200, "commit $label") or diag($r->summary());

	$oid{$label} = $r->json()->{commitOid};
	$label{$oid{$label}} = $label;
	$label{substr($oid{$label}, 0, 10)} = $label;
	$label{sha256_hex($label)} = $label;
}

# two commits whose ids begin with the same digits

my $short = substr($oid{one}, 0, 7);
my $twice = substr($oid{four}, 0, 9);

$t->sql("INSERT INTO xet.hub_commits (repo_id, line, seq, oid, who, title)"
	. " VALUES (1, 0, 100, decode('$twice' || repeat('0', 31), 'hex'),"
	. " 'me', 'of the same digits')");

my %made = (
	'branch dev' => 'two', 'branch dev-2/x' => 'three',
	'branch a/b' => 'two', 'tag v1' => 'three', 'tag v2/rc' => 'two'
);

for my $name (sort keys %made) {
	my ($kind, $ref) = split(' ', $name);

	is(make($kind, $ref, $oid{$made{$name}})->{status}, 200, "make $name");
}

my %old = (
	"heads/$oid{one}" => 'two', "heads/$oid{one}/d" => 'two',
	"tags/$oid{one}" => 'three', "heads/$short" => 'two',
	"heads/$twice" => 'two', "heads/$oid{one}x" => 'four',
	'heads/' . uc($oid{one}) => 'two', 'heads/' . 'ab' x 20 => 'two',
	'heads/' . 'ab' x 20 . '/d' => 'two', 'heads/HEAD' => 'two',
	'heads/HEAD/d' => 'two', 'tags/HEAD' => 'two', 'heads/refs' => 'two',
	'heads/refs/heads/dev' => 'four', 'heads/refs/tags/v1' => 'four',
	'heads/tags/v1' => 'four', 'heads/heads/dev' => 'four',
	'tags/heads/dev' => 'four', 'tags/heads/x' => 'three',
	'tags/dev' => 'four', 'heads/both' => 'two', 'tags/both' => 'three',
	'tags/only' => 'three', 'heads/a' => 'one', 'heads/a/b/d' => 'four',
	'heads/beefbee' => 'two', 'heads/pr%2F1' => 'four',
	'heads/refs/pr/1' => 'two'
);

$t->sql('INSERT INTO xet.hub_refs (repo_id, name, oid) VALUES '
	. join(', ', map { "(1, '$_', '\\x$oid{$old{$_}}')" } sort keys %old));

# --------------------------------------------------------------------------
# In each row: the revision as written in the path, and the result.

my $one = $oid{one};
my $ab = 'ab' x 20;
my $none = 'RevisionNotFound';

my @rows = (

	# the full id of a commit

	[ $one, 'one' ], [ uc($one), 'one' ], [ $ab, $none ],
	[ "$one%2Fd", $none ], [ "$ab%2Fd", $none ],
	[ substr($one, 0, 39), 'one' ], [ $one . '0', $none ],
	[ $one . 'x', 'four' ],
	[ "$short%2F" . 'x' x 32, $none ],

	# the first digits of a commit id, unless a branch has this name

	[ $short, 'two' ], [ $twice, 'two' ], [ 'beefbee', 'two' ],
	[ substr($one, 0, 8), 'one' ], [ uc(substr($one, 0, 8)), 'one' ],
	[ substr($oid{four}, 0, 12), 'four' ],
	[ substr($oid{four}, 0, 8), $none ],
	[ substr($one, 0, 6), $none ],

	# HEAD

	[ 'HEAD', 'five' ], [ 'HEAD%2Fd', $none ], [ 'head', $none ],

	# names with a prefix such as refs/heads/

	[ 'refs%2Fheads%2Fmain', 'five' ], [ 'refs%2fheads%2fdev', 'two' ],
	[ 'refs%2Fheads%2Fa%2Fb', 'two' ], [ 'refs%2Ftags%2Fv1', 'three' ],
	[ 'refs%2Fheads%2Fv1', $none ], [ 'refs%2Ftags%2Fmain', $none ],
	[ "refs%2Fheads%2F$one", 'two' ], [ "refs%2Ftags%2F$one", 'three' ],
	[ "refs%2Fheads%2F$one%2Fd", 'two' ], [ 'refs%2Fheads%2FHEAD', 'two' ],
	[ 'refs%2Fheads%2Fheads%2Fdev', 'four' ],
	[ 'refs%2Ftags%2Fheads%2Fx', 'three' ], [ 'refs%2Ftags%2Fdev', 'four' ],
	[ 'refs', $none ], [ 'refs%2Fheads', $none ],
	[ 'refs%2Fpr%2F1', $none ],
	[ 'refs%2Fconvert%2Fparquet', $none ],

	# a branch or, if there is none, a tag

	[ 'main', 'five' ], [ 'dev', 'two' ], [ 'v1', 'three' ],
	[ 'v2%2Frc', 'two' ], [ 'both', 'two' ], [ 'only', 'three' ],
	[ 'heads%2Fx', 'three' ], [ 'heads%2Fdev', 'four' ],
	[ 'tags%2Fv1', 'four' ], [ 'heads%2Fmain', $none ],
	[ 'tags%2Fonly', $none ], [ 'a%2Fb', 'two' ], [ 'a', 'one' ],
	[ 'a%2Fb%2Fd', 'four' ], [ 'dev-2%2Fx', 'three' ],
	[ 'dev-2%2fx', 'three' ], [ 'Dev', $none ],

	# names are percent-decoded once

	[ 'pr%252F1', 'four' ], [ 'a%252Fb', $none ],
	[ 'refs%252Fheads%252Fdev', $none ], [ "$one%252Fd", $none ],

	# invalid names

	[ 'dev.', $none ], [ '%20dev', $none ],
	(map { [ $_, $none, bad => 1 ] } 'dev%0A', '%ff', 'x' x 256),

	# an unescaped slash, as some clients send it: the longest revision
	# wins, and the path follows

	[ 'dev-2/x', 'three', sent => 1 ], [ 'v2/rc', 'two', sent => 1 ],
	[ 'refs/heads/dev', 'two', sent => 1 ],
	[ 'refs/tags/v1', 'three', sent => 1 ],
	[ 'refs/heads/dev-2/x', 'three', sent => 1 ],
	[ 'refs/pr/1', $none, sent => 1 ],
);

for my $row (@rows) {
	my ($rev, $want, %o) = @$row;
	my %got = (%{ asked_with_path($rev) }, %{ asked($rev, $o{sent}) });
	my %wrong = map { $_ => $got{$_} }
		grep { $got{$_} ne (/token/ && !$o{bad} ? 'ok' : $want) }
		keys %got;
	my $name = substr($rev, 0, 60);

	is_deeply(\%wrong, {}, "revision '$name' is $want")
		or diag(explain(\%got));
}

# branches "a", "a/b" and "a/b/d", which no request creates together: a slash
# that is not escaped ends the name of an existing branch

is(text("/me/m/resolve/$_->[0]/f.txt"), $_->[1], "$_->[0]/f.txt")
	for [ 'a/d', 'one' ], [ 'a%2Fb/d', 'two' ],
	[ 'a/b/d', 'EntryNotFound' ],
	[ 'dev-2/x/d', 'three' ], [ 'a%2Fb%2Fd/d', 'four' ],
	[ 'refs/heads/a/b/d/d', 'four' ],
	[ 'refs%2Fheads%2Fa/b/d', 'EntryNotFound' ],
	[ 'refs%2Fheads%2Fa/d', 'one' ];

# if nginx has to merge slashes or resolve dots, it also decodes %2F

is(text("/me/m/resolve/$_->[0]/f.txt"), $_->[1], "normalized: $_->[0]")
	for [ 'a%2F/d', 'one' ], [ '%2Fdev/d', 'two' ],
	[ 'x/%2e%2e/dev/d', 'two' ],
	[ 'dev-2//x/d', 'three' ], [ "x/../$one%2Fd", 'one' ],
	[ "$one//d", 'one' ];

# --------------------------------------------------------------------------
# revisions that a write accepts: names of branches

for ([ 'main', 200 ], [ 'HEAD', 200 ], [ 'refs%2Fheads%2Fmain', 200 ],
	[ 'refs/heads/main', 200 ], [ 'dev', 200 ], [ 'a%2Fb', 200 ],
	[ 'dev-2/x', 200 ], [ "refs%2Fheads%2F$one", 200 ],
	[ "refs%2Fheads%2F$one%2Fd", 200 ],
	[ $one, 404 ], [ uc($one), 404 ], [ $ab, 404 ], [ "$one%2Fd", 404 ],
	[ $short, 200 ], [ $twice, 200 ], [ substr($one, 0, 8), 404 ],
	[ 'v1', 404 ],
	[ 'refs%2Ftags%2Fv1', 404 ], [ 'refs%2Fheads%2Fv1', 404 ],
	[ 'refs%2Fpr%2F1', 404 ], [ 'HEAD%2Fd', 404 ], [ 'none', 404 ])
{
	my ($rev, $status) = @$_;
	my $r = commit($rev, { key => 'file', value => { path => 'w',
		encoding => 'utf-8', content => "to $rev" } });

	is($r->{status}, $status, "commit to $rev: $status")
		or diag($r->summary());
}

is(text("/me/m/resolve/$one/w"), 'EntryNotFound', 'the commit is as it was');
is(text("/me/m/resolve/refs%2Fheads%2F$one/w"), "to refs%2Fheads%2F$one",
	'the branch of this name is not');

# a path is copied from the commit's branch, not from a branch with a similar
# name

is(commit('main', { key => 'file', value => { path => 'only-main',
	encoding => 'utf-8', content => 'x' } })->{status}, 200, 'a file');
$t->sql("INSERT INTO xet.hub_refs (repo_id, name, oid)"
	. " VALUES (1, 'heads/heads/main', '\\x$oid{two}')");
is(commit('main', { key => 'copyFile', value => { path => 'copy',
	srcPath => 'only-main' } })->{status}, 200,
	'a copy is of the branch, and not of one called heads/main');
$t->sql("DELETE FROM xet.hub_refs WHERE name = 'heads/heads/main'");

# a short parent is refused if it is a prefix of two commit ids

my $file = { key => 'file', value => { path => 'd/f.txt',
	encoding => 'utf-8', content => 'parent' } };

is(commit('refs%2Fheads%2F' . $twice, $file, parent => substr($oid{two}, 0, 7))
	->{status}, 200, 'a parent of seven digits');
make('branch', 'same', $oid{four});
is(commit('same', $file, parent => $twice)->{status}, 412,
	'digits of two commits are no parent, also of the last one');
is(commit('same', $file, parent => substr($oid{four}, 0, 6))->{status}, 412,
	'nor are six');
is(commit('same', $file, parent => uc(substr($oid{four}, 0, 12)))->{status},
	200, 'in capitals');

# --------------------------------------------------------------------------
# names that are refused

for my $name ('ab' x 20, 'AB' x 20, "$one/d", 'HEAD', 'HEAD/x', 'refs',
	'refs/heads/x', 'refs/x')
{
	my ($first) = $name =~ m!^([^/]+)!;

	for my $kind (qw/ branch tag /) {
		my $r = make($kind, $name, 'main');

		is($r->{status}, 400, "no $kind '$name'")
			or diag($r->summary());
		is($r->json()->{details}{code}, 'ref_reserved',
			"no $kind '$name': code");
		like($r->json()->{error}, qr/"\Q$first\E"/, 'its reason');
	}
}

for my $name ('abcdef', 'abcdefg', 'ab' x 20 . 'a', 'x/abcdef0', 'heads/y',
	'abcdef0-x', 'abcdef0', '1234567', 'ab' x 10, 'abcdef0/x', '20261126',
	'head', 'refsx')
{
	is(make('branch', $name, 'main')->{status}, 200, "a branch '$name'");
	is(unmake('branch', $name)->{status}, 200, 'and none');
}

# as in git, a name can't be a folder of another name; and a name can't be both
# a branch and a tag

make('tag', 'w1', 'main');

for (
	[ 'branch', 'dev/x' ], [ 'branch', 'dev/x/y' ], [ 'branch', 'main/d' ],
	[ 'branch', 'dev-2' ], [ 'branch', 'w1' ], [ 'branch', 'w1/x' ],
	[ 'tag', 'main' ], [ 'tag', 'main/d' ], [ 'tag', 'dev/x' ],
	[ 'tag', 'dev-2' ], [ 'tag', 'w1/x' ], [ 'tag', 'v2' ],
	[ 'branch', 'v2' ], [ 'branch', 'v2/rc' ]
) {
	my $r = make($_->[0], $_->[1], 'main');

	is($r->{status}, 400, "no $_->[0] '$_->[1]'") or diag($r->summary());
	is($r->json()->{details}{code}, 'ref_conflict', 'code');
	like($r->json()->{error}, qr!refs/(?:heads|tags)/!, 'what is there');
}

is(make('branch', 'dev-2/x', 'main')->{status}, 409, 'existing branch: 409');
is(make('branch', 'both', 'main')->{status}, 400, 'also as a tag: 400');
is(make('branch', 'devx', 'main')->{status}, 200, 'no part of a name');

# three concurrent requests create conflicting branches; one succeeds

{
	my $session = $t->pg_session();

	$session->run('BEGIN');
	$session->run("SELECT FROM xet.hub_repos WHERE id = 1"
		. ' FOR NO KEY UPDATE');

	my @c = map {
		my $text = '{}';
		$t->http_start('POST', "/api/models/me/m/branch/$_", {
			'Content-Type' => 'application/json',
			'Content-Length' => length($text) }, $text,
			timeout => 30)
	} 'two%2Fat', 'two%2Fat%2Fonce', 'two';

	$session->run('COMMIT');
	$session->close();

	is(join(' ', sort map { $_->response()->{status} } @c), '200 400 400',
		'two of one name at once: one');
}

# existing branches and tags with such names can be deleted

is(unmake('branch', "$one/d")->{status}, 200, 'an old branch can be deleted');
is(unmake('tag', $one)->{status}, 200, 'an old tag can be deleted');
is(text("/me/m/resolve/$one/d/f.txt"), 'one', 'the commit is as it was');

# a path that nginx has normalized is decoded only once

is(commit('main', map { { key => 'file', value => { path => $_,
	encoding => 'utf-8', content => $_ } } } 'p%41', 'pA', '100%')
	->{status}, 200, 'names with a percent sign');
is(text("//me/m/resolve/main/p%2541"), 'p%41', 'decoded once');
is(text("//me/m/resolve/main/100%25"), '100%', 'decoded once: at the end');
is(text("/me/m/resolve/main/x/../p%2541"), 'p%41', 'decoded once: dots');

# the message of a tag is counted as metadata of the repo

is(commit('main', { key => 'file', value => { path => 'last', encoding =>
	'utf-8', content => 'x' } })->{status}, 200, 'a last commit');
$t->sql('SELECT count(*) FROM xet.usage_recount()');

for my $text ('first release', 'two "words"', '') {
	is(post('/api/models/me/m/tag/main', { tag => 'noted',
		message => $text })->{status}, 200,
		"a tag with the message '$text'");

	my ($tag) = grep { $_->{name} eq 'noted' }
		@{ $t->get("/api/models/me/m/refs")->json()->{tags} };

	is($tag->{message}, $text eq '' ? undef : $text, 'its message');
	is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
		'its bytes are counted');
	unmake('tag', 'noted');
	is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
		'and are not counted after it is deleted');
}

$t->stop();

done_testing();

# --------------------------------------------------------------------------

sub post {
	my ($uri, $body) = @_;

	return $t->post($uri, \$json->encode($body),
		{ 'Content-Type' => 'application/json' });
}

sub commit {
	my ($rev, @ops) = @_;
	my %o;

	%o = splice(@ops, 1) if @ops > 1 && !ref($ops[1]);

	my $text = join('', map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 'x',
			$o{parent} ? (parentCommit => $o{parent}) : () } },
		@ops);

	return $t->post("/api/models/me/m/commit/$rev", \$text,
		{ 'Content-Type' => 'application/x-ndjson' });
}

sub escape { return $_[0] =~ s!/!%2F!gr }

sub make {
	my ($kind, $name, $at) = @_;

	return $kind eq 'branch'
		? post('/api/models/me/m/branch/' . escape($name),
			{ startingPoint => $at })
		: post("/api/models/me/m/tag/$at", { tag => $name });
}

sub unmake {
	my ($kind, $name) = @_;

	return $t->http('DELETE', "/api/models/me/m/$kind/" . escape($name));
}

sub text {
	my $r = $t->get($_[0]);

	return $r->{status} == 200 ? $r->{body}
		: $r->header_value('X-Error-Code') // $r->{status};
}

# Returns the commit of a response, or its error code.

sub seen {
	my ($r, $how) = @_;

	return $r->header_value('X-Error-Code') // $r->{status}
		if $r->{status} != 200;

	my $what = $how->($r);

	return $label{$what // ''} // $what // 'nothing';
}

sub asked_with_path {
	my ($rev) = @_;
	my $m = '/me/m';

	return {
		resolve => seen($t->get("$m/resolve/$rev/d/f.txt"),
			sub { $_[0]{body} }),
		head => seen($t->head("$m/resolve/$rev/d/f.txt"),
			sub { $_[0]->header_value('X-Linked-ETag')
				=~ tr/"//dr }),
		raw => seen($t->get("$m/raw/$rev/d/f.txt"),
			sub { $_[0]{body} }),
		tree => seen($t->get("/api/models/me/m/tree/$rev/d"),
			sub { $_[0]->json()->[0]{lfs}{oid} })
	};
}

sub asked {
	my ($rev, $sent) = @_;
	my $m = '/api/models/me/m';
	my $plain = $rev =~ s/%(..)/chr(hex($1))/egr;
	my %seen;

	$seen{info} = seen($t->get("$m/revision/$rev"),
		sub { $_[0]->json()->{sha} });
	$seen{paths} = seen(post("$m/paths-info/$rev",
		{ paths => [ 'd/f.txt' ] }),
		sub { $_[0]->json()->[0]{lfs}{oid} });
	$seen{commits} = seen($t->get("$m/commits/$rev"),
		sub { $_[0]->json()->[0]{id} });
	$seen{preupload} = seen(post("$m/preupload/$rev",
		{ files => [ { path => 'd/f.txt', size => 1 } ] }),
		sub { $_[0]->json()->{files}[0]{oid} });
	# a token is issued for the whole repo, and clients send "None" as the
	# revision in these routes

	$seen{"$_ token"} = seen($t->get("$m/xet-$_-token/$rev"),
		sub { 'ok' }) for qw/ read write /;

	# in a body the name is not escaped, and a name that is not valid text
	# cannot be sent as JSON

	return \%seen if $sent || $plain =~ /[\x00-\x1f\x80-\xff]/;

	$seen{'branch'} = seen(make('branch', 'scratch', $plain), sub {
		my ($ref) = grep { $_->{name} eq 'scratch' }
			@{ $t->get("$m/refs")->json()->{branches} };
		return $ref->{targetCommit};
	});
	unmake('branch', 'scratch');

	# an invalid name makes the body invalid

	$seen{branch} = $none if $seen{branch} eq '400';

	$seen{'tag'} = seen(post("$m/tag/$rev", { tag => 'scratch' }), sub {
		my ($ref) = grep { $_->{name} eq 'scratch' }
			@{ $t->get("$m/refs")->json()->{tags} };
		return $ref->{targetCommit};
	});
	unmake('tag', 'scratch');

	return \%seen;
}

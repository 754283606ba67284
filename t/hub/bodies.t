#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Bodies of commits, branches and preupload: a commit as one JSON object, as
# OpenDAL sends it; empty branches, moved branches and squashed branches;
# "deletedFile" for a folder; a ".gitignore".

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Table;
use Test::Xet::Token;

use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $t = Test::Xet->new(Test::Xet::Table::hub(
	'xet_auth token; xet_hub_public on; xet_hub_rows 3000;',
	Test::Xet::Token::token_location()), workers => 1);
my $json = JSON::PP->new()->canonical();

$t->token_key();
$t->run();
$t->allow(qr/xet: 4\d\d /);

my $me = $t->auth('delete', '@alice');
my $bob = $t->auth('admin', '@bob');
my $repo = '/api/models/alice/m';
my $true = JSON::PP::true;

is(post('/api/repos/create', { name => 'm' })->{status}, 200, 'a repo');
is(post('/api/repos/create', { name => 'p', private => $true })->{status}, 200,
	'a private repo');
is(post('/api/buckets/alice/b', {})->{status}, 200, 'a bucket');

# --------------------------------------------------------------------------
# a commit as one object

my $commit = { summary => 'one object', description => 'text',
	files => [ map { { path => "d/f$_", content => encode_base64("text $_",
		''), encoding => 'base64' } } 1 .. 20 ] };

for my $how ('on one line', 'on many lines', 'with other ends of lines') {
	$_->{path} =~ s!^\w+/!substr($how, -3) . '/'!e
		for @{ $commit->{files} };

	my $body = $how =~ /one/ ? $json->encode($commit)
		: JSON::PP->new()->pretty()->encode($commit);

	$body =~ s/\n/\r\n/g if $how =~ /other/;

	my $r = $t->post("$repo/commit/main", \$body, { %$me,
		'Content-Type' => 'application/json' });

	is($r->{status}, 200, "$how: commits") or diag($r->summary());
	is(text(substr($how, -3) . '/f7'), 'text 7', "$how: a file");
}

my ($last) = @{ $t->get("$repo/commits/main")->json() };

is("$last->{title}, $last->{message}", 'one object, text', 'its title');

is(object(summary => 'del', deletedFiles => [ { path => 'ine/f1' } ],
	deletedFolders => [ { path => 'nes/' } ])->{status}, 200, 'deletes');
is(files(), 19, 'a file and a folder');
is(object(summary => 'del', deletedEntries => [ { path => 'ine/f2' } ],
	files => [ { path => 'ine/f2', content => 'new' } ])->{status}, 200,
	'deletes and adds');
is(text('ine/f2'), 'new', 'the new file');

# a worker stages operations in batches of 1000

is(object(summary => 'many', files => [ map { { path => "many/$_",
	content => '' } } 1 .. 2345 ])->{status}, 200, 'several batches');
is(files('main', 'many'), 1000, 'all files');
is($t->sql("SELECT files FROM xet.hub_lines WHERE repo_id = 1 AND line = 0"),
	19 + 2345, 'all files are counted');

my $head = head();

for my $bad (
	[ 'no title', { files => [] } ],
	[ 'an unknown key', { summary => 's', file => [] }, 'unknown_key' ],
	[ 'an unknown key of a file', { summary => 's', files => [ { path =>
		'x', content => '', mode => '755' } ] }, 'unknown_key' ],
	[ 'no list', { summary => 's', files => {} }, 'unsupported_value' ],
	[ 'no objects', { summary => 's', files => [ 'x' ] } ],
	[ 'no path', { summary => 's', deletedFiles => [ {} ] } ],
	[ 'an unsafe path', { summary => 's', files => [ { path => 'a',
		content => '' }, { path => '.git/config', content => '' } ] },
		'unsafe_path' ],
	[ 'no base64', { summary => 's', files => [ { path => 'x', content =>
		'?', encoding => 'base64' } ] } ],
	[ 'a file that is not there', { summary => 's', lfsFiles => [ { path =>
		'x', algo => 'sha256', oid => 'ab' x 32, size => 5 } ] },
		'unknown_file' ])
{
	my ($name, $body, $code) = @$bad;
	my $r = post("$repo/commit/main", $body);

	is($r->{status} . ' ' . $r->json()->{details}{code}, '400 '
		. ($code // 'invalid_commit'), "an object with $name");
}

my $one = $json->encode({ summary => 's' });

for my $bad ("$one\n$one", "$one\n{\"key\":\"file\",\"value\":{\"path\":\"x\","
	. "\"content\":\"\"}}", '{', "{\n\"summary\"\n", "x\ny", "[\n]", '[]')
{
	is(raw("$repo/commit/main", $bad)->{status}, 400,
		'refused: ' . $bad =~ s/\n/\\n/gr);
}

is(raw("$repo/commit/main", '{"summary":"' . 'x' x (2 << 20) . '"}')
	->{status}, 413, 'an object of 2 MiB');
is(raw("$repo/commit/main", "{\n" . '"a":1,' x (1 << 19) . "\n}")->{status},
	413, 'also on many lines');
is(raw('/api/buckets/alice/b/batch', "{\n}")->{status}, 400, 'no batch');
is(head(), $head, 'nothing was committed');

# --------------------------------------------------------------------------
# deletedFile for a folder

is(lines($repo, { key => 'file', value => { path => 'x/y/z', content => '1' } },
	{ key => 'file', value => { path => 'x/a', content => '2' } })
	->{status}, 200, 'a folder');
is(lines($repo, { key => 'deletedFile', value => { path => 'many' } })
	->{status}, 200, 'a folder by deletedFile');
is(files(), 19 + 2, 'all of it');
is(lines($repo, { key => 'deletedFile', value => { path => 'x/y/' } })
	->{status}, 200, 'also with a slash');
is(files('main', 'x'), 1, 'and nothing else');
is(lines($repo, { key => 'deletedFile', value => { path => 'none' } })
	->{status}, 404, 'a path that does not exist');
is(lines($repo, { key => 'deletedFile', value => { path => 'x/y' } })
	->{status}, 404, 'a folder that does not exist');

# a commit that another one has changed

my $parent = head();

lines($repo, { key => 'file', value => { path => 'x/new', content => '' } });
is(post("$repo/commit/main", { summary => 's', parentCommit => $parent,
	deletedFiles => [ { path => 'x' } ] })->{status}, 412,
	'a folder that another commit has changed');

# --------------------------------------------------------------------------
# branches

is(post("$repo/branch/empty", { emptyBranch => $true })->{status}, 200,
	'an empty branch');
is(files('empty'), 0, 'has no files');
is(scalar @{ $t->get("$repo/commits/empty")->json() }, 1, 'has one commit');
is($t->get("$repo/revision/empty")->json()->{sha}, head('empty'), 'has an id');
is(text('x/a', 'empty'), undef, 'a file is 404');
is(lines($repo, 'empty', { key => 'file', value => { path => 'e',
	content => 'e' } })->{status}, 200, 'a commit to it');
is(files('empty'), 1, 'has one file');
is(text('x/a'), '2', 'main has its files');

is(post("$repo/branch/two")->{status}, 200, 'a branch');
is(post("$repo/branch/two")->{status}, 409, 'it exists');
is(post("$repo/branch/two", { emptyBranch => $true })->{status}, 409,
	'also for an empty one');
is(post("$repo/branch/two", { overwrite => $true })->{status}, 200,
	'overwrite without a revision');
is(head('two'), head(), 'changes nothing');
is(post("$repo/branch/two", { overwrite => $true, startingPoint => 'empty' })
	->{status}, 200, 'overwrite');
is(head('two'), head('empty'), 'moves the branch');
is(post("$repo/branch/two", { overwrite => $true, emptyBranch => $true })
	->{status}, 200, 'overwrite with an empty one');
is(files('two'), 0, 'has no files');
is(post("$repo/branch/new", { overwrite => $true })->{status}, 200,
	'overwrite of none');
is(head('new'), head(), 'is a new branch');
is(post("$repo/branch/two", { overwrite => $true, startingPoint => 'none' })
	->{status}, 404, 'overwrite with nothing');
is(files('two'), 0, 'changes nothing');

# twice at once, and by people who may not

is($t->post("$repo/branch/theirs", \'{"emptyBranch":true}', $bob)->{status},
	403, 'only readers');
is($t->post('/api/models/alice/p/branch/x', \'{"emptyBranch":true}', $bob)
	->{status}, 404, 'a private repo');

# --------------------------------------------------------------------------
# one commit

my $old = head();
my $tree = listed('main');

is(post("$repo/tag/main", { tag => 'before', message => 'text' })->{status},
	200, 'a tag');
is($t->post("$repo/super-squash/main", \'{}', $bob)->{status}, 403,
	'squash: only readers');
is($t->post('/api/models/alice/p/super-squash/main', \'{}', $bob)->{status},
	404, 'squash: a private repo');
is($t->post("$repo/super-squash/main", \'{}')->{status}, 401,
	'squash: without a token');
is(post("$repo/super-squash/before", {})->{status}, 404, 'squash: a tag');
is(post("$repo/super-squash/$old", {})->{status}, 404, 'squash: a commit');
is(post("$repo/super-squash/none", {})->{status}, 404, 'squash: nothing');
is(head(), $old, 'squash: nothing changed');

is(post("$repo/super-squash/main", { message => 'squashed' })->{status}, 200,
	'squash');
isnt(head(), $old, 'squash: another commit');
is(listed('main'), $tree, 'squash: the same files');

my @history = @{ $t->get("$repo/commits/main")->json() };

is(scalar @history, 1, 'squash: one commit');
is($history[0]{title}, 'squashed', 'squash: its title');
is($t->get("$repo/commits/main")->header_value('X-Total-Count'), 1,
	'squash: counted');
is(head('before'), $old, 'squash: a tag keeps its commit');
is(listed($old), $tree, 'squash: readable by its id');
is(lines($repo, { key => 'file', value => { path => 'after',
	content => 'after' } })->{status}, 200, 'squash: another commit');
is(text('after'), 'after', 'squash: its file');
is(text('x/a'), '2', 'squash: and another one');
is($t->get("$repo?blobs=true")->json()->{usedStorage}, $t->sql('SELECT'
	. ' sum(size) FROM xet.hub_paths WHERE repo_id = 1 AND line = (SELECT'
	. " line FROM xet.hub_commits WHERE oid = decode('" . head()
	. "', 'hex')) AND till = 2147483647"), 'squash: the size');
is(post("$repo/super-squash/main", {})->{status}, 200, 'squash again');
is($t->get("$repo/commits/main")->header_value('X-Total-Count'), 1,
	'squash again: one commit');

object(summary => 's', files => [ map { { path => "f$_", content => '' } }
	$_ .. $_ + 1499 ]) for 1, 1501, 3001;

is(post("$repo/super-squash/main", {})->{status}, 413,
	'squash: too many files');
is(scalar @{ $t->get("$repo/commits/main")->json() }, 4,
	'squash: nothing changed');

# the figures of the repo are still the sums of its rows

is($t->sql('SELECT count(*) FROM xet.hub_lines l WHERE l.repo_id = 1 AND'
	. ' l.bases = \'{}\' AND l.files <> (SELECT count(*) FROM xet.hub_paths'
	. ' p WHERE p.repo_id = 1 AND p.line = l.line AND p.till = 2147483647'
	. ' AND p.hash IS NOT NULL)'), 0, 'the numbers of files of lines');

# --------------------------------------------------------------------------
# a .gitignore

my %ignored = ('a.log' => 1, 'keep.log' => 0, 'd/b.log' => 1, '.env' => 1,
	'build/x' => 1, 'src/build/x' => 0, 'x.txt' => 0);
my $r = post("$repo/preupload/main", { gitIgnore => "# text\n*.log\n.env\r\n"
	. "/build/\n!keep.log\n", files => [ map { { path => $_, size => 1,
	sample => 'AA==' } } sort keys %ignored ] });

is($r->{status}, 200, 'preupload');

my %got = map { $_->{path} => $_->{shouldIgnore} ? 1 : 0 }
	@{ $r->json()->{files} };

is_deeply(\%got, \%ignored, 'files that a .gitignore excludes');

is(scalar(grep { $_->{shouldIgnore} } @{ post("$repo/preupload/main", { files =>
	[ { path => 'a.log', size => 1 } ] })->json()->{files} }), 0,
	'without a .gitignore none');
is(post("$repo/preupload/main", { gitIgnore => 'x' x 300_000, files => [] })
	->{status}, 413, 'a very long .gitignore');
is(post("$repo/preupload/main", { gitIgnore => join("\n", map { '*a' x 100
	. 'b' } 1 .. 1000),
	files => [ map { { path => 'a' x 250 . $_, size => 1 } } 1 .. 9000 ] })
	->{status}, 413, 'a .gitignore that takes too long');

# the .gitignore in the repo, of the revision

is(ignored('main'), '', 'no rules in the repo');
is(inline('main', '.gitignore', "*.log\n")->{status}, 200,
	'a commit with a .gitignore');
is(ignored('main'), 'a.log', 'the rules in the repo');
is(ignored('main', gitIgnore => "x.txt\n"), 'x.txt',
	'the rules in the body replace those in the repo');
is(ignored('main', gitIgnore => ''), '', 'so do empty rules');
is(ignored('main', gitIgnore => undef), 'a.log', 'null means no rules');
is(post("$repo/branch/other", {})->{status}, 200, 'another branch');
is(inline('other', '.gitignore', "x*\n")->{status}, 200, 'other rules there');
is(ignored('main') . '/' . ignored('other'), 'a.log/x.txt',
	'each branch has its own rules');
is(inline('other', '.gitignore', '')->{status}, 200, 'an empty .gitignore');
is(ignored('other'), '', 'an empty .gitignore has no rules');
is(inline('other', '.gitignore', "#\n" x 140_000)->{status}, 200,
	'a .gitignore of 280 KB');

$r = post("$repo/preupload/other", { files => [ { path => 'a', size => 1 } ] });

is($r->{status}, 400, 'rules that are too long');
like($r->{body}, qr/gitIgnore.*too long/, 'the message names the reason');
is(ignored('other', gitIgnore => '*.log'), 'a.log',
	'the body can replace rules that are too long');
is(inline('other', '.gitignore', undef)->{status}, 200, 'no rules any more');
is(ignored('other'), '', 'a deleted .gitignore has no rules');

# A caller without rights gets no rules.

is(bob_preupload('alice/m')->{status}, 403, 'a caller who may only read');
is($t->sql('UPDATE xet.hub_repos SET private = true'), '', 'a private repo');
is(bob_preupload('alice/m')->{body}, bob_preupload('alice/none')->{body},
	'a stranger sees no difference from a missing repo');
$t->sql('UPDATE xet.hub_repos SET private = false');

# Rules in a file that cannot be read do not count as none.

is(inline('other', '.gitignore', "a.*\n")->{status}, 200, 'rules again');

for my $file (glob $t->store() . '/xorbs/default/*/*') {
	open my $f, '+<', $file or die "$file: $!\n";
	print $f 'x' x -s $file;
	close $f;
}

$t->allow(qr/xet: .*damaged/);

$r = post("$repo/preupload/other", { files => [ { path => 'a.log',
	size => 1 } ] });

is($r->{status}, 500, 'a damaged .gitignore') or diag($r->{body});
is(ignored('other', gitIgnore => '*.log'), 'a.log',
	'a damaged .gitignore is not needed if the body has rules');

$t->stop();

done_testing();

# --------------------------------------------------------------------------

sub post {
	my ($uri, $body) = @_;

	return raw($uri, defined $body ? $json->encode($body) : '');
}

sub raw {
	my ($uri, $body) = @_;

	return $t->post($uri, \$body, { %$me,
		'Content-Type' => 'application/json' });
}

# Commits a file, or deletes it if its text is undefined.

sub inline {
	my ($branch, $path, $text) = @_;

	return lines($repo, $branch, defined $text
		? { key => 'file', value => { path => $path,
			encoding => 'base64',
			content => encode_base64($text, '') } }
		: { key => 'deletedFile', value => { path => $path } });
}

# Returns which of some files preupload says to ignore.

sub ignored {
	my ($branch, @rules) = @_;
	my $r = post("$repo/preupload/$branch", { @rules, files => [
		map { { path => $_, size => 1 } } qw/ a.log x.txt / ] });

	return $r->{status} if $r->{status} != 200;
	return join ' ', map { $_->{path} } grep { $_->{shouldIgnore} }
		@{ $r->json()->{files} };
}

sub bob_preupload {
	my ($name) = @_;

	return $t->post("/api/models/$name/preupload/main", \$json->encode({
		files => [ { path => 'a.log', size => 1 } ] }), { %$bob,
		'Content-Type' => 'application/json' });
}

sub object { return post("$repo/commit/main", { @_ }) }

sub lines {
	my ($uri, @lines) = @_;
	my $branch = ref $lines[0] ? 'main' : shift @lines;

	return $t->post("$uri/commit/$branch", \join('',
		map { $json->encode($_) . "\n" } { key => 'header',
		value => { summary => 's' } }, @lines),
		{ %$me, 'Content-Type' => 'application/x-ndjson' });
}

sub head {
	my ($rev) = @_;

	return $t->get("$repo/revision/" . ($rev // 'main'))->json()->{sha};
}

# Returns the number of files on the first page of a tree.

sub files {
	my ($rev, $path) = @_;
	my $r = $t->get("$repo/tree/" . ($rev // 'main')
		. ($path ? "/$path" : '') . '?recursive=true');

	return $r->{status} == 200 ? scalar grep { $_->{type} eq 'file' }
		@{ $r->json() } : $r->{status};
}

sub listed {
	return join(' ', map { "$_->{path}:" . ($_->{xetHash} // $_->{type}) }
		@{ $t->get("$repo/tree/$_[0]?recursive=true")->json() });
}

sub text {
	my ($path, $rev) = @_;
	my $r = $t->get('/alice/m/resolve/' . ($rev // 'main') . "/$path");

	return $r->{status} == 200 ? $r->{body} : undef;
}

#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The metadata of README.md: read from each commit, in whatever form the file
# was sent, shown with the revision that has it, and refused if it is broken.
# Lists filter by it, and never show others' private repos.  Cursors are only
# accepted for the list that they belong to.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Table;
use Test::Xet::Token;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 ();

my $t = Test::Xet->new(Test::Xet::Table::hub(
	'xet_auth token; xet_hub_public on;',
	Test::Xet::Token::token_location()), workers => 1);

$t->token_key();
$t->run();

my $json = JSON::PP->new()->canonical();
my $alice = $t->auth('admin', '@alice');
my $bob = $t->auth('write', '@bob');

# --------------------------------------------------------------------------
# one card, sent in each form

my $card = "---\npipeline_tag: text-classification\n"
	. "library_name: transformers\ntags: [x, 3.1]\nlicense: mit\n"
	. "language: no\nbase_model: a/b\ndatasets:\n- c/d\n---\n# m\n";
my $tags = 'transformers x 3.1 text-classification no dataset:c/d'
	. ' base_model:a/b license:mit';

create($alice, 'inline');
is(commit($alice, 'inline', inline('README.md', $card))->{status}, 200,
	'a card in the commit');
shown('inline', $tags, 'in the commit');

create($alice, 'lfs');
commit($alice, 'lfs', lfs($alice, 'alice/lfs', 'README.md', "$card "));
shown('lfs', $tags, 'an uploaded file');

is(create($alice, 'first', files => [ inline('README.md', "$card  ")->{value}
	])->{status}, 200, 'a card of a new repo');
shown('first', $tags, 'a new repo');

create($alice, 'copied');
commit($alice, 'copied', inline('a.md', "$card   "));
is(info('copied')->{pipeline_tag}, undef, 'another file is no card');
commit($alice, 'copied', { key => 'copyFile', value => { path => 'README.md',
	srcPath => 'a.md' } });
shown('copied', $tags, 'a copy of a file');

# the same bytes in another repo

create($alice, 'again');
commit($alice, 'again', inline('README.md', $card));
shown('again', $tags, 'the same file');

my $info = info('inline');

is_deeply([ @$info{qw/ pipeline_tag library_name /} ],
	[ qw/ text-classification transformers / ], 'info: members');
is_deeply($info->{cardData}, { pipeline_tag => 'text-classification',
	library_name => 'transformers', tags => [ 'x', 3.1 ],
	license => 'mit', language => 'no', base_model => 'a/b',
	datasets => [ 'c/d' ] }, 'info: cardData');

# --------------------------------------------------------------------------
# each revision has its own card

my $before = info('inline')->{sha};

branch($alice, 'inline', 'side');
commit($alice, 'inline', inline('README.md', "---\ntags: new\n---\n"));
is(join(' ', @{ info('inline')->{tags} }), 'new', 'a new card');
is(join(' ', @{ info("inline/revision/$before")->{tags} }), $tags,
	'an older commit keeps its card');
is(join(' ', @{ info('inline/revision/side')->{tags} }), $tags, 'a branch');
is_deeply(found('filter=new'), [ 'alice/inline' ], 'a list has the new card');

commit($alice, 'inline', { key => 'deletedFile',
	value => { path => 'README.md' } });
is_deeply(info('inline')->{tags}, [], 'no README');
is(info('inline')->{cardData}, undef, 'no README: no card');
is_deeply(found('filter=new'), [], 'no README: not found');

commit($alice, 'inline', inline('README.md', ''));
is_deeply(info('inline')->{tags}, [], 'an empty README');
commit($alice, 'inline', inline('README.md', "# no card\n"));
is_deeply(info('inline')->{tags}, [], 'a README without a card');
commit($alice, 'inline', inline('docs/README.md', $card));
is_deeply(info('inline')->{tags}, [], 'in another folder');

# --------------------------------------------------------------------------
# broken cards

my $head = info('inline')->{sha};

for my $case ([ "---\nlicense: [mit\n---\n", qr/line 3/ ],
	[ "---\n- a\n---\n", qr/must be a mapping/ ],
	[ "---\na: b\na: c\n---\n", qr/duplicated mapping key \(line 3\)/ ],
	[ "---\na: !!python/name:os.system\n---\n", qr/unknown tag/ ],
	[ "---\na: &a [*a]\n---\n", qr/unknown alias/ ],
	[ "---\na: \"\\0\"\n---\n", qr/NUL/ ],
	[ "---\na: \xff\n---\n", qr/line / ],
	[ "---\na: " . ('x' x 1_100_000) . "\n---\n", qr/longer than 1048576/ ],
	[ "---\na: " . ('x' x 1_060_000) . "\n", qr/longer than 1048576/, 1 ])
{
	my ($text, $error, $only) = @$case;
	my $name = sprintf('%.20s', $text =~ s/\n/ /gr) . '... '
		. length($text);

	my $r = commit($alice, 'inline', lfs($alice, 'alice/inline',
		'README.md', $text));

	is($r->{status}, 400, "$name: refused") or diag($r->summary());
	like($r->json()->{error}, $error, "$name: message");

	next if $only || $text =~ /\xff/;

	$r = validate($text);

	is($r->{status}, 400, "$name: validate-yaml");
	like($r->json()->{errors}[0]{message}, $error,
		"$name: validate-yaml: message");
}

is(info('inline')->{sha}, $head, 'no commit');
is(create($alice, 'broken', files => [ inline('README.md',
	"---\na: [\n---\n")->{value} ])->{status}, 400, 'a new repo');
is($t->get('/api/models/alice/broken', $alice)->{status}, 404,
	'a new repo: does not exist');

is(validate($card)->{body}, '{"errors":[],"warnings":[]}', 'a valid card');
is(validate("# m\n")->{status}, 200, 'no card');

my $plain = $t->post('/api/validate-yaml', \$json->encode({
	content => "---\n- a\n---\n", repoType => 'model' }),
	{ 'Content-Type' => 'application/json', Accept => 'text/plain' });

is($plain->{body}, '- Error: the metadata must be a mapping (line 1)',
	'an error as text');
is($t->post('/api/validate-yaml', \'{}')->{status}, 400, 'no content');
is($t->post('/api/validate-yaml', \'no JSON')->{status}, 400, 'no JSON');

# a card that would break clients which pass it as arguments

commit($alice, 'again', inline('README.md',
	"---\nself: 1\nignore_metadata_errors: true\nlicense: mit\n---\n"));
is_deeply(info('again')->{cardData}, { license => 'mit' },
	'names of parameters are omitted');

# --------------------------------------------------------------------------
# datasets and spaces

create($alice, 'd', type => 'dataset');
commit($alice, 'datasets/alice/d', inline('README.md',
	"---\nlanguage: [en]\ntask_categories: [qa]\nlicense: mit\n---\n"));
is_deeply([ map { $_->{id} } @{ list('datasets', 'filter=language:en'
	. '&filter=task_categories:qa') } ], [ 'alice/d' ], 'datasets');
is_deeply([ map { $_->{id} } @{ list('datasets', 'language=en') } ],
	[ 'alice/d' ], 'datasets: language');
is_deeply(list('datasets', 'language=de'), [], 'datasets: no match');
is(list('datasets', 'full=true')->[0]{cardData}{license}, 'mit',
	'datasets: full has cards');

create($alice, 's', type => 'space', sdk => 'gradio');
commit($alice, 'spaces/alice/s', inline('README.md',
	"---\nsdk: gradio\ntitle: x\n---\n"));
is(list('spaces', 'filter=gradio')->[0]{sdk}, 'gradio', 'spaces');

# --------------------------------------------------------------------------
# filters

is_deeply([ sort @{ found('filter=x') } ],
	[ map { "alice/$_" } qw/ copied first lfs / ], 'a tag');
is(scalar @{ found($_) }, 3, $_) for 'filter=x&filter=3.1', 'filter=x,3.1',
	'filter=transformers', 'filter=license%3Amit&tags=x',
	'license=mit&tags=x',
	'license=license:mit&tags=x', 'pipeline_tag=text-classification',
	'library=transformers', 'language=no', 'dataset=c/d', 'base_model=a/b',
	'filter=dataset:c/d', 'filter=x&author=alice', 'filter=x&gated=false',
	'filter=x&sort=lastModified&direction=-1', 'filter=x&sort=createdAt';
is_deeply(found($_), [], "$_: nothing") for 'filter=no-such-tag',
	'pipeline_tag=x', 'pipeline_tag=no-such-task', 'filter=x&filter=nope',
	'filter=X', 'filter=x&author=bob', 'filter=x&search=zzz', 'gated=true',
	'filter=0:x', 'filter=%25';
is_deeply(found('filter=x&search=FIR'), [ 'alice/first' ], 'with a search');
is_deeply(found('search=alice&search=opi'), [ 'alice/copied' ],
	'two searches');
is_deeply([ map { $_->{id} } @{ list('models', 'sort=createdAt') } ],
	[ map { "alice/$_" } qw/ again copied first lfs inline / ],
	'recently created first');

my ($one) = @{ list('models', 'search=first&full=true') };

is_deeply([ map { $_->{rfilename} } @{ $one->{siblings} } ],
	[ 'README.md' ], 'full: files');
ok(!exists $one->{cardData}, 'full: no card of a model');
is(list('models', 'search=first&cardData=true')->[0]{cardData}{license},
	'mit', 'cardData');
is(list('models', 'search=first&expand=cardData')->[0]{cardData}{license},
	'mit', 'expand=cardData');
ok(!exists list('models', 'search=first')->[0]{siblings}, 'no files');
ok(!exists info('first?expand=likes')->{siblings}, 'info: expand: no files');
is(scalar @{ info('first?expand[]=siblings&expand=tags')->{siblings} }, 1,
	'info: expand: files');

# Properties that no repo here has: clients request them, but need no value.

for my $property (qw/ gitalyUid region resourceGroup xetEnabled /) {
	is($t->get("/api/$_?expand=$property", $alice)->{status}, 200,
		"$_: expand=$property")
		for qw! models spaces models/alice/first !;
}

for my $args (qw/ x=1 sort=likes sort=downloads sort=trendingScore direction=1
	sort= limit=0 limit=x limit=-1 full=2 config=true expand=safe
	inference=warm apps=x num_parameters=min:6B filter=%FF filter=%0A
	gated=x cursor=x sdk=x task_ids=x fIlter=x /)
{
	my $r = $t->get("/api/models?$args", $alice);

	is($r->{status}, 400, "$args: refused");
	like($r->json()->{error}, $args =~ /^cursor/ ? qr/cursor/
		: qr/argument: \Q@{[ $args =~ s!=.*!!r ]}\E\z/,
		"$args: message");
}

is($t->get("/api/models/alice/first?$_", $alice)->{status}, 400, "info: $_")
	for qw/ securityStatus=true expand=configs x=1 blobs=x /;
is($t->get('/api/models?' . join('&', ('filter=x') x 101), $alice)->{status},
	400, 'many arguments');
is($t->get("/api/models/alice/first/$_?limit=x", $alice)->{status}, 400,
	"$_: limit") for qw! tree/main commits/main !;

# --------------------------------------------------------------------------
# private repos

create($alice, 'private', private => JSON::PP::true);
commit($alice, 'private', inline('README.md',
	"---\ntags: [secret, x]\n---\n"));

is_deeply(found('filter=secret'), [ 'alice/private' ], 'private: its owner');

for my $who ([ 'bob', $bob ], [ 'nobody', {} ]) {
	my ($name, $auth) = @$who;

	is($t->get('/api/models?filter=secret', $auth)->{body}, '[]',
		"private: $name");
	is($t->get('/api/models?filter=secret&limit=1', $auth)
		->header_value('Link'), undef, "private: $name: no next page");
	is(scalar @{ $t->get('/api/models?filter=x', $auth)->json() }, 3,
		"private: $name: only public ones");
}

# --------------------------------------------------------------------------
# all repos of a user

my $own = $t->get('/api/settings/repositories', $alice);

is($own->{status}, 200, 'own repos') or diag($own->summary());
is(join(' ', sort map { "$_->{type}:$_->{id}:$_->{visibility}" }
	grep { $_->{id} =~ /private|\/d$|\/s$/ } @{ $own->json() }),
	'dataset:alice/d:public model:alice/private:private'
	. ' space:alice/s:public', 'own repos: kinds');
is((grep { $_->{id} eq 'alice/first' } @{ $own->json() })[0]{storage},
	length("$card  "), 'own repos: storage');
is($t->get('/api/settings/repositories', $bob)->{body}, '[]',
	'own repos: of bob');
is($t->get('/api/settings/repositories')->{status}, 401,
	'own repos: nobody');
is($t->get('/api/organizations/alice/settings/repositories', $alice)->{body},
	$own->{body}, 'own repos: by name');

my $theirs = $t->get('/api/organizations/alice/settings/repositories', $bob);

is(scalar @{ $theirs->json() }, scalar @{ $own->json() } - 1,
	'own repos: others see public ones');
unlike($theirs->{body}, qr/private"/, 'own repos: others see no private one');
is($t->get('/api/organizations/no/settings/repositories', $bob)->{body}, '[]',
	'own repos: of nobody');

my @own = pages('/api/settings/repositories?limit=2', $alice);

is(scalar @own, scalar @{ $own->json() }, 'own repos: pages');
is($t->get('/api/settings/repositories?x=1', $alice)->{status}, 400,
	'own repos: an argument');

# --------------------------------------------------------------------------
# cursors

commit($alice, $_, map { inline("f$_", "$_") } 1 .. 5) for qw/ first lfs /;

my $tree = '/api/models/alice/first/tree/main';
my $commits = '/api/models/alice/first/commits/main';

is(join(' ', map { $_->{path} } pages("$tree?limit=2", $alice)),
	'README.md f1 f2 f3 f4 f5', 'pages of a tree');
is(scalar pages("$commits?limit=1", $alice), 2, 'pages of commits');
is(scalar pages('/api/models?limit=2', $alice), 6, 'pages of a list');
is(scalar pages('/api/models?limit=1&filter=x', $alice), 4,
	'pages of a filter');
is(scalar pages('/api/models?limit=2&sort=createdAt', $alice), 6,
	'pages of another order');

# by size and by name: sizes are those of main, whatever the last commit was to

commit($alice, 'copied', inline('big', 'b' x 500));
is($t->post('/api/models/alice/lfs/branch/other', \'{}', $alice)->{status},
	200, 'a branch');
commit($alice, [ 'lfs', 'other' ], inline('bigger', 'b' x 1000));

my @rows = pages('/api/models?limit=2&sort=usedStorage', $alice);
my @sizes = map { $_->{usedStorage} } @rows;

is(join(' ', @sizes), join(' ', sort { $b <=> $a } @sizes),
	'by size: the largest first');
is_deeply(\@sizes, [ map { info($_->{id} =~ s!alice/!!r)->{usedStorage} }
	@rows ], 'by size: as in the description');
is(join(' ', map { $_->{id} } pages('/api/models?limit=2&sort=id', $alice)),
	join(' ', sort map { $_->{id} } @rows), 'by name');
is($t->get('/api/models?sort=id&cursor=1.0123456789abcdef.a/b/1',
	$alice)->{status}, 400, 'by name: a cursor of the client');

my ($cursor) = next_of($t->get("$tree?limit=2", $alice)) =~ /cursor=([^&]+)/;

ok($cursor, 'a cursor');

my $made = MIME::Base64::encode_base64(MIME::Base64::encode_base64(
	'{"file_name":"f5"}', '') . ':50', '');

for my $case ([ $tree, 'f1', 'a path' ],
	[ $tree, '', 'empty' ],
	[ $tree, $made =~ s/=/%3D/gr, 'made by a client' ],
	[ $tree, substr($cursor, 0, -1), 'truncated' ],
	[ $tree, $cursor . '1', 'longer' ],
	[ $tree, '2' . substr($cursor, 1), 'another version' ],
	[ '/api/models/alice/lfs/tree/main', $cursor, 'of another repo' ],
	[ "/api/models/alice/first/tree/@{[ info('first')->{sha} ]}", $cursor,
		'of another revision' ],
	[ $commits, $cursor, 'of another list' ],
	[ '/api/models', $cursor, 'of a tree' ],
	[ '/api/models/alice/first/changes/main', $cursor, 'of a tree' ])
{
	my ($uri, $sent, $name) = @$case;
	my $r = $t->get("$uri?cursor=$sent", $alice);

	is($r->{status}, 400, "cursor: $name");
	like($r->{body}, qr/invalid_cursor/,
		"cursor: $name: message");
}

# a cursor of one filter, in the list of another

my $next = next_of($t->get('/api/models?limit=1&filter=x', $alice));

is($t->get($next, $alice)->{status}, 200, 'cursor: of a filter');
is($t->get($next =~ s/filter=x/filter=license:mit/r, $alice)->{status}, 400,
	'cursor: of another filter');
is($t->get("$next&sort=createdAt", $alice)->{status}, 400,
	'cursor: of another order');

# a repo that moves between two pages

$next = next_of($t->get("$tree?limit=2", $alice));

is($t->post('/api/repos/move', \$json->encode({ fromRepo => 'alice/first',
	toRepo => 'alice/Moved', type => 'model' }), $alice)->{status}, 200,
	'a repo moves');

my $r = $t->get($next, $alice);

is($r->{status}, 307, 'a moved repo');
$r = $t->get($r->header_value('Location') =~ s!^http://[^/]+!!r, $alice);
is($r->{status}, 200, 'a moved repo: the next page')
	or diag($r->summary());
is(join(' ', map { $_->{path} } @{ $r->json() }), 'f2 f3',
	'a moved repo: its entries');
shown('Moved', $tags, 'a moved repo: the card');

# --------------------------------------------------------------------------
# very many files: all of them, in parts

create($alice, 'many');
commit($alice, 'many', map { inline(sprintf('f%05d', $_), '') } 1 .. 10_100);

$r = $t->get('/api/models/alice/many', $alice, timeout => 120);
is(scalar @{ $r->json()->{siblings} }, 10_100, 'all files');
is($r->json()->{siblings}[10_099]{rfilename}, 'f10100', 'the last file');
ok(!exists((grep { $_->{id} eq 'alice/many' }
	@{ list('models', 'full=true') })[0]{siblings}),
	'a list has no files of a large repo');

# --------------------------------------------------------------------------
# a file that the operator removes

my $hash = $t->sql("SELECT encode(xet.hub_hash(f.hash), 'hex')"
	. " FROM xet.files f WHERE f.sha256 = decode('"
	. sha256_hex("$card ") . "', 'hex')");

$t->sql("DELETE FROM xet.repo_files rf USING xet.files f"
	. " WHERE rf.file_id = f.id AND xet.hub_hash(f.hash)"
	. " = decode('$hash', 'hex')");
is_deeply(info('lfs')->{tags}, [], 'a removed file');
ok(!grep({ $_ eq 'alice/lfs' } @{ found('filter=x') }),
	'a removed file: not found');

# --------------------------------------------------------------------------
# who the caller is

my $me = $t->get('/api/whoami-v2', $alice)->json();

is_deeply([ sort keys %$me ], [ sort qw/ type id name fullname email avatarUrl
	periodEnd canPay emailVerified isPro orgs auth / ], 'whoami');
like($me->{auth}{accessToken}{createdAt}, qr/^\d{4}-\d\d-\d\dT/,
	'whoami: since when');

$t->done();

# --------------------------------------------------------------------------

sub create {
	my ($who, $name, %o) = @_;

	return $t->post('/api/repos/create', \$json->encode({ name => $name,
		%o }), { %$who, 'Content-Type' => 'application/json' });
}

sub commit {
	my ($who, $repo, @lines) = @_;
	my $rev = ref $repo ? pop @$repo : 'main';

	($repo) = @$repo if ref $repo;
	$repo = "models/alice/$repo" if $repo !~ m!/!;

	return $t->post("/api/$repo/commit/$rev", \join("\n",
		map { $json->encode($_) } { key => 'header',
			value => { summary => 'a commit' } }, @lines),
		{ %$who, 'Content-Type' => 'application/x-ndjson' },
		timeout => 120);
}

sub inline {
	my ($path, $data) = @_;

	return { key => 'file', value => { path => $path,
		encoding => 'base64',
		content => MIME::Base64::encode_base64($data, '') } };
}

# Uploads a file by LFS, and returns the line that adds it to a commit.

sub lfs {
	my ($who, $repo, $path, $data) = @_;

	my $oid = sha256_hex($data);
	my $r = $t->post("/$repo.git/info/lfs/objects/batch",
		\$json->encode({ operation => 'upload',
			transfers => [ 'basic' ], objects => [ { oid => $oid,
				size => length($data) } ] }),
		{ %$who, 'Content-Type' => 'application/vnd.git-lfs+json' });
	my $action = $r->json()->{objects}[0]{actions}{upload};

	if ($action) {
		my $put = $t->put($action->{href} =~ s!^http://[^/]+!!r, $data);

		die $put->summary() if $put->{status} != 200;
	}

	return { key => 'lfsFile', value => { path => $path, algo => 'sha256',
		oid => $oid, size => length($data) } };
}

sub branch {
	my ($who, $repo, $name) = @_;

	my $r = $t->post("/api/models/alice/$repo/branch/$name", \'{}', $who);

	is($r->{status}, 200, "branch $name");
}

sub info { return $t->get("/api/models/alice/$_[0]", $alice)->json() }
sub list { return $t->get("/api/$_[0]?$_[1]", $alice)->json() }
sub found { return [ map { $_->{id} } @{ list('models', $_[0]) } ] }

sub shown {
	my ($repo, $expected, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(join(' ', @{ info($repo)->{tags} }), $expected, "card: $name");

	my ($listed) = grep { $_->{id} eq "alice/$repo" }
		@{ list('models', 'filter=license:mit') };

	is(join(' ', @{ $listed->{tags} // [] }), $expected,
		"card: $name: in a list");
}

sub validate {
	my ($text) = @_;

	return $t->post('/api/validate-yaml', \$json->encode({
		content => $text, repoType => 'model' }),
		{ 'Content-Type' => 'application/json' });
}

sub next_of {
	my ($r) = @_;

	my ($url) = ($r->header_value('Link') // '')
		=~ m!<http://[^/]+([^>]+)>!;

	return $url;
}

# Returns the entries of all pages of a list.

sub pages {
	my ($uri, $who) = @_;

	my (@all, $n);

	while (defined $uri && $n++ < 20) {
		my $r = $t->get($uri, $who);

		is($r->{status}, 200, "$uri: a page") or diag($r->summary());
		push @all, @{ $r->json() };
		$uri = next_of($r);
	}

	return @all;
}

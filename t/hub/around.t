#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# conf/xet_hub.conf together with the API, with tokens, and with other features
# of nginx and of the module: nginx's errors in Hub format, the audit log,
# $xet_route, pages of other origins, TLS, limits, content codings, subrequests
# and log levels.

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

my $audit = slurp(root() . '/conf/xet_audit.conf');

$audit =~ s!/var/log/nginx/xet_audit.log!%%DIR%%/audit.log!
	or die "conf/xet_audit.conf has no log\n";

my $t = Test::Xet->new(workers => 1, log => 'info',
	http => "$audit\nxet_token_key %%DIR%%/token.key;\n"
		. 'xet_upload_zone $xet_client zone=uploads:1m concurrent=2;',
	locations => Test::Xet::Token::token_location() . <<'EOC');
        add_header X-Route $xet_route always;

        xet_auth token;
        xet_hub_public on;
        xet_cors https://hub.example;
        xet_require_tls $tls;
        xet_upload_limit uploads;

        set $tls https;

        if ($http_x_plain) {
            set $tls http;
        }

        include %%DIR%%/xet_location.conf;
        include %%DIR%%/xet_hub.conf;

        location /front/ {
            xet_hub on;
            xet_hub_base /front;
            xet_auth off;
            xet_hub_user $http_x_user;
            xet_hub_owners $http_x_owners;
            xet_api_base /cas;
        }

        location /team/ {
            xet_hub on;
            xet_hub_base /team;
            xet_hub_owners $http_x_owners;
            xet_hub_user $http_x_user;
            xet_api_base /cas;
        }

        location /page/ {
            ssi on;
            ssi_types *;
            root %%DIR%%;
        }
EOC

my $store = $t->store();

$t->write_file('xet_location.conf', slurp(root() . '/conf/xet_location.conf')
	=~ s!/var/lib/xet\b!$store!gr);
$t->write_file('xet_hub.conf', slurp(root() . '/conf/xet_hub.conf')
	=~ s/(location \/cas\/ \{)/$1 xet_require_tls off;/r);
mkdir($t->dir() . '/page');
$t->write_file('page/x.html', '<!--# include virtual="/api/models" -->');
$t->token_key();
$t->run();
$t->fds_mark();

my $r;

# --------------------------------------------------------------------------
# next to a Hub, errors of the API keep their own format

is($t->get('/api/health')->{status}, 200, 'the API: health');
$r = $t->get('/api/v1/files/' . 'f' x 64);
is($r->{status}, 401, 'the API: a token is required');
is(ref $r->json()->{error}, 'HASH', 'the API: the error is an object');

# --------------------------------------------------------------------------
# the audit log

$r = post('/api/repos/create', { name => 'm', private => JSON::PP::true },
	'alice');
is($r->{status}, 200, 'create');
is_deeply(told(), { action => 'hub.create', subject => 'alice',
	hub => 'models/alice/m', status => 200, path => '/api/repos/create' },
	'audit: create');

is(commit('alice', 'alice/m', a => 'one')->{status}, 200, 'commit');
is_deeply(told(), { action => 'hub.commit', subject => 'alice',
	hub => 'models/alice/m', status => 200, rows => 1,
	path => '/api/models/alice/m/commit/main' }, 'audit: commit');

is($t->get('/alice/m/resolve/main/a', who('alice'))->{body}, 'one', 'resolve');
is($t->get('/api/models/alice/m/tree/main', who('alice'))->{status}, 200,
	'tree');
is(told(), undef, 'audit: no line for a read');

$r = $t->get('/api/models/alice/m/xet-write-token/main', who('alice'));
is($r->{status}, 200, 'a token');

my $told = told();

like(delete $told->{repo}, qr!^_hub/\d+$!, 'audit: the repo of the token');
cmp_ok(delete $told->{expires}, '>', time(), 'audit: until when');
is_deeply($told, { action => 'token.mint', subject => 'alice',
	scope => 'write', hub => 'models/alice/m', status => 200,
	path => '/api/models/alice/m/xet-write-token/main' },
	'audit: a token');

is(commit('robin', 'alice/m', a => 'two')->{status}, 404,
	'somebody else: not there');
is_deeply(told(), { action => 'hub.commit', subject => 'robin',
	hub => 'models/alice/m', status => 404, code => 'RepoNotFound',
	path => '/api/models/alice/m/commit/main' }, 'audit: somebody else');

is($t->post('/api/repos/create', '{"name":"x"}', who('alice', 'read'))
	->{status}, 403, 'a token to read');
is(told()->{code}, 'insufficient_scope', 'audit: a token to read');
is($t->get('/api/models/alice/m', { Authorization => 'Bearer hf_x' })
	->{status}, 401, 'a bad token');
is(told()->{code}, 'invalid_token', 'audit: a bad token');

# --------------------------------------------------------------------------
# $xet_route names the group of a route

is($t->get($_->[0], who('alice'))->header_value('X-Route'), $_->[1],
	"\$xet_route of $_->[0]") for
	[ '/api/whoami-v2', 'hub_account' ],
	[ '/api/models/alice/m', 'hub_repo' ],
	[ '/api/models/alice/m/tree/main', 'hub_tree' ],
	[ '/alice/m/resolve/main/a', 'hub_file' ],
	[ '/api/models/alice/m/xet-read-token/main', 'hub_token' ],
	[ '/api/v1/files/' . 'f' x 64, 'files' ];
told();
is($t->get('/nothing/at/all', who('alice'))->header_value('X-Route'), undef,
	'$xet_route of nothing');

# --------------------------------------------------------------------------
# requests that nginx itself refuses

$t->allow(qr/client intended to send too large body/);

$r = $t->http('POST', '/alice/m.git/info/lfs/objects/batch',
	{ %{ who('alice') }, 'Content-Length' => 2 << 20 });
is_deeply([ @$r{'status'}, $r->json()->{error} ],
	[ 413, 'the request body is too large' ], '413: a text');
is($r->header_value('X-Error-Message'), 'the request body is too large',
	'413: in a header');
is(scalar(my @ids = $r->header_value('X-Error-Message')), 1, '413: once');

$r = $t->get('/%2e%2e/%2e%2e/x', who('alice'));
is($r->{status}, 400, 'above the root');

for my $case ([ POST => '/api/models/alice/m/commit/main' ],
	[ POST => '/api/repos/create' ])
{
	my ($method, $uri) = @$case;

	$r = $t->http($method, $uri, { %{ who('alice') },
		'Content-Encoding' => 'gzip' }, \'{}');
	is($r->{status}, 415, "$uri: a coding");
	is($r->header_value('Accept-Encoding'), 'identity', "$uri: none");
	ok(!ref $r->json()->{error}, "$uri: a text");
	told();
}

$r = $t->http('DELETE', '/api/whoami-v2', who('alice'));
is_deeply([ $r->{status}, $r->header_value('Allow') ], [ 405, 'GET, HEAD' ],
	'405: which methods');

# requests that probe for a Hub are not logged as errors

my $from = $t->log_size();

is(post('/api/repos/create', { name => 'm' }, 'alice')->{status}, 409,
	'create: twice');
is(commit('alice', 'alice/m', { parent => '0' x 40 }, a => 'x')->{status}, 412,
	'commit: another parent') or 1;
unlike(substr($t->log(), $from), qr/\[(?:error|crit|alert)\]/,
	'no error in the log');

# --------------------------------------------------------------------------
# browsers

my %origin = (Origin => 'https://hub.example');

$r = $t->http('OPTIONS', '/api/models/alice/m/commit/main', { %origin,
	'Access-Control-Request-Method' => 'POST' });
is($r->{status}, 204, 'preflight');
like($r->header_value('Access-Control-Allow-Headers'), qr/\bAuthorization\b/,
	'preflight: tokens');

$r = $t->get('/alice/m/resolve/main/nothing', { %origin, %{ who('alice') } });
is($r->header_value('Access-Control-Allow-Origin'), 'https://hub.example',
	'an error: to be read');
like($r->header_value('Access-Control-Expose-Headers'), qr/\b$_\b/,
	"exposed: $_") for qw/ X-Error-Code X-Repo-Commit Link X-Linked-Size /;

# --------------------------------------------------------------------------
# a token over plain HTTP

my %plain = ('X-Plain' => 1);

is_deeply($t->get('/api/models/alice/m', { %plain, %{ who('alice') } })
	->json()->{details}{code}, 'tls_required', 'TLS: a token');
is_deeply($t->get('/api/models/alice/m', { %plain, Authorization => 'Basic '
	. encode_base64('x:' . token('alice'), '') })->json()->{details}{code},
	'tls_required', 'TLS: a token as a password');
is($t->get('/api/models', \%plain)->{status}, 200, 'TLS: without one');
told();

# --------------------------------------------------------------------------
# a token as a password: browsers send it even with requests that a page of
# another origin triggers

my %basic = (Authorization => 'Basic '
	. encode_base64('x:' . token('alice'), ''));

is($t->get('/api/models/alice/m', \%basic)->{status}, 200,
	'a password: reads');
is($t->post('/api/repos/create', '{"name":"b1"}', \%basic)->{status}, 200,
	'a password: writes');

for my $case ([ 'https://other.example', 403 ], [ 'null', 403 ],
	[ $t->url(''), 401 ])
{
	my ($origin, $status) = @$case;

	is($t->post('/api/repos/create', '{"name":"b2"}', { %basic,
		Origin => $origin })->{status}, $status,
		"a password: not for a page of $origin");
}

is($t->post('/api/repos/create', '{"name":"b2"}', { %{ who('alice') },
	Origin => 'https://hub.example' })->{status}, 200,
	'a token: for a page, too');
is($t->get('/alice/m/resolve/main/a', { %basic,
	Origin => 'https://other.example' })->{status}, 200,
	'a password: reads, and CORS says who may see it');
told();

# --------------------------------------------------------------------------
# concurrent uploads

my @slow = map {
	my $c = $t->http_start('POST', '/api/models/alice/m/commit/main',
		{ %{ who('alice') }, 'Content-Length' => 1000,
		'Content-Type' => 'application/x-ndjson' }, 'x');
	$c;
} 1, 2;

ok(wait_for(10, sub {
	$r = commit('alice', 'alice/m', a => "limited $$");

	return $r->{status} == 429;
}), 'a third one: 429');
ok(!ref $r->json()->{error}, 'a third one: a text');
like($r->header_value('Retry-After'), qr/^\d+$/, 'a third one: later');
is($t->get('/api/models/alice/m', who('alice'))->{status}, 200,
	'who reads is not counted');
$_->close() for @slow;
$t->allow(qr/xet: 429|xet: 400|client prematurely/);
ok(wait_for(10, sub {
	commit('alice', 'alice/m', a => 'after')->{status} == 200
}), 'and then: 200');

# --------------------------------------------------------------------------
# a front end that authenticates users: a user owns the name space with the
# user's name, and those in xet_hub_owners

sub front {
	my ($user, $name, %o) = @_;

	my ($space, $owners) = @o{qw/ in owners /};

	return $t->post('/front/api/repos/create', \JSON::PP::encode_json({
		name => $name, $space ? (organization => $space) : (),
		$o{private} ? (private => JSON::PP::true) : () }),
		{ 'X-User' => $user, 'X-Owners' => $owners // '' });
}

sub seen_by {
	return $t->get("/front/api/models/$_[1]", { 'X-User' => $_[0] })
		->{status};
}

is(front('carol', 'c')->{status}, 200, 'front: her own');
is(front('carol', 'p', private => 1)->{status}, 200, 'front: a private one');
is(front('carol', 'd', in => 'dan')->{status}, 403, 'front: of somebody else');
is(front('carol', 'd', in => 'lab', owners => 'x,lab')->{status}, 200,
	'front: of a group');
is(front('carol', 'd', in => 'la', owners => 'x,lab')->{status}, 403,
	'front: of another group');
is(front('carol', 'd', in => 'dan', owners => '*')->{status}, 200,
	'front: owners "*"');
is(front($_, 'd')->{status} < 500 && front($_, 'd')->{status} >= 400, 1,
	"front: '$_' has no name space")
	for '', '*', ',carol,', '..', 'a/b', "\xff";
is(front('', 'x', in => 'carol')->{status}, 403, 'front: nobody writes');
is(front(',carol,', 'x', in => 'carol')->{status}, 403,
	'front: nor by a name that is a list');
is(seen_by('carol', 'carol/p'), 200, 'front: she sees her own');
is(seen_by('Carol', 'carol/p'), 404, 'front: upper case is somebody else');
is(seen_by($_, 'carol/p'), 404, "front: '$_' does not") for 'dan', '', '*';
is(seen_by('', 'carol/c'), 200, 'front: a public repo without a user');

# --------------------------------------------------------------------------
# without a token, a caller owns no name space, whatever xet_hub_user and
# xet_hub_owners contain

for my $owners ('alice', '*', 'x,alice') {
	my %said = ('X-Owners' => $owners, 'X-User' => 'alice');

	is($t->get('/team/api/models/alice/m', \%said)->{status}, 404,
		"nobody, owners $owners: a private repo");
	is($t->get('/team/alice/m/resolve/main/a', \%said)->{status}, 404,
		"nobody, owners $owners: its files");
	unlike($t->get('/team/api/models?author=alice', \%said)->{body},
		qr!alice/m"!, "nobody, owners $owners: lists");
}

is($t->get('/team/api/models/alice/m', { %{ who('dan') },
	'X-Owners' => 'alice' })->{status}, 200, 'with a token: they apply');

# --------------------------------------------------------------------------
# if the Hub issues a token for another token, the new token does not expire
# later

sub given {
	return $t->get('/api/models/alice/m/xet-write-token/main', $_[0])
		->json();
}

my $given = given(who('alice'));

sleep(2);
is(given({ Authorization => "Bearer $given->{accessToken}" })->{exp},
	$given->{exp}, 'a token for a token: same expiry');
told();

# --------------------------------------------------------------------------
# the Hub refuses a write from a page of another origin, if the browser sends
# the origin

for my $case ([ 'https://evil.example', 403 ], [ 'null', 403 ],
	[ 'http://evil.localhost', 403 ],
	[ 'https://hub.example', 200 ], [ $t->url(''), 200 ])
{
	my ($origin, $status) = @$case;

	is($t->post('/front/api/repos/create', '{"name":"o' . $status
		. length($origin) . '"}', { 'X-User' => 'carol',
		Origin => $origin })->{status}, $status, "a page of $origin");
}

# --------------------------------------------------------------------------
# a media type with a line break or a character outside ASCII is refused

for my $type ("text/html\r\n\r\n<script>", "a\nb", "a\x{e9}") {
	$r = $t->post('/front/api/buckets/carol/types', '{}', {
		'X-User' => 'carol' });
	$r = $t->post('/front/api/buckets/carol/types/batch',
		JSON::PP::encode_json({ type => 'addFile', path => 'a',
			xetHash => 'a' x 64, mtime => 0,
			contentType => $type }), { 'X-User' => 'carol',
		'Content-Type' => 'application/x-ndjson' });
	is($r->{status}, 400, 'no type: ' . JSON::PP->new()->ascii()
		->allow_nonref()->encode($type));
}

# --------------------------------------------------------------------------
# "me" is the caller, in lists as well.  A moved repo is found even if its old
# name occurs several times in the path.

is_deeply([ sort map { $_->{id} } @{ $t->get('/api/models?author=me',
	who('alice'))->json() } ], [ map { "alice/$_" } qw/ b1 b2 m / ],
	'author=me');

for my $name (qw/ s d datas et /) {
	post('/api/repos/create', { name => $name, type => 'dataset' }, $name);

	is(post('/api/repos/move', { fromRepo => "$name/$name",
		toRepo => "$name/x", type => 'dataset' }, $name)->{status}, 200,
		"$name: moved");

	for my $uri ("/api/datasets/%s", "/datasets/%s/resolve/main/a?x=$name",
		"/api/datasets/%s/tree/main/$name/$name")
	{
		$r = $t->get(sprintf($uri, "$name/$name"), who($name));

		is($r->{status}, 307, "$name: $uri");
		is($r->header_value('Location'), sprintf($uri, "$name/x"),
			"$name: $uri: where it is");
	}
}

# --------------------------------------------------------------------------
# "xet_token" issues no token whose repo is named like a Hub repo in the store

is($t->get("/token/write/$_")->{status}, 400, "no token for $_")
	for '_hub/1', '_hub/', '_hub/1@x';
is($t->get("/token/write/$_")->{status}, 200, "a token for $_")
	for '_hub', 'x/_hub/1';

# --------------------------------------------------------------------------
# subrequests

$t->allow(qr/subrequest rejected/);
unlike($t->get('/page/x.html')->{body}, qr/\[/, 'a subrequest has no response');

is($t->http('DELETE', '/api/repos/delete', who('alice', 'delete'),
	\'{"name":"m","organization":"alice"}')->{status}, 200, 'delete');

my @lines = lines();

is($lines[-1]{action}, 'hub.delete', 'audit: delete');
is($lines[-1]{hub}, 'models/alice/m', 'audit: which');

my $log = slurp($t->dir() . '/audit.log') . $t->log();

unlike($log, qr/\Q$_\E/, 'no token in a log')
	for map { token($_) } qw/ alice robin /;

$t->done();

# --------------------------------------------------------------------------

sub token {
	my ($who, $scope) = @_;

	return who($who, $scope)->{Authorization} =~ s/^Bearer //r;
}

sub who {
	my ($who, $scope) = @_;

	return $t->auth($scope // 'write', "\@$who");
}

sub post {
	my ($uri, $data, $who) = @_;

	return $t->post($uri, \JSON::PP::encode_json($data), who($who));
}

sub commit {
	my ($who, $repo, @files) = @_;
	my %header = (summary => 'a commit');

	$header{parentCommit} = (shift @files)->{parent} if ref $files[0];

	my %files = @files;

	my @lines = map { {
		key => 'file', value => { path => $_, encoding => 'base64',
			content => encode_base64($files{$_}, '') }
	} } sort keys %files;

	return $t->post("/api/models/$repo/commit/main", \join("\n",
		map { JSON::PP::encode_json($_) }
		{ key => 'header', value => \%header }, @lines),
		{ %{ who($who) }, 'Content-Type' => 'application/x-ndjson' });
}

# Returns the lines of the audit log since the last call.

my $seen;

sub lines {

	# a line is written after its response and before the next request is
	# handled

	$t->get('/api/health');

	my @lines = map { JSON::PP::decode_json($_) }
		split(/\n/, slurp($t->dir() . '/audit.log', 1) // '');
	my @new = @lines[($seen // 0) .. $#lines];

	$seen = @lines;

	return @new;
}

sub told {
	my ($line) = reverse lines();

	return undef unless $line;

	delete @$line{qw/ time address request key bytes metadata /};

	return $line;
}

package Test::Xet::Hub;

# Copyright (C) the ngx_http_xet_module authors

# Runs several servers, and a Hub in front of them (t/clients/hub_shim.py), for
# tests with real clients.
#
#     my $t = Test::Xet->new(conf => '');
#     Test::Xet::Hub::prepare($t);
#     $t->run();
#     my $hub = Test::Xet::Hub->new($t);
#
#     $hub->node('alice/a', 'upload', 'w.bin', $file);
#     $hub->hf('', 'download', 'alice/a', 'w.bin');
#
# The servers share one store and one database.  The owner of the repo, or
# endpoint(name), selects the server:
#
#     alice    tokens required, repos separated
#     plain    no tokens
#     old      /v2/ is 404
#     ranges   up to 8 ranges an entry
#     expire   every data URL is rejected once and works after a new request
#     break    the first data response of each xorb is truncated

use warnings;
use strict;

use parent qw/ Exporter Test::Xet::Program /;

use File::Temp qw/ tempdir /;
use JSON::PP ();

use Test::Xet::Bytes;
use Test::Xet::Process qw/ reap root slurp spawn wait_for /;
use Test::Xet::Real;

our @EXPORT = qw/ xorb_bytes /;

my $SHIM = 9000;

my %ports = (
	plain => 8080, old => 8081, expire => 8082, ranges => 8083,
	alice => 8084, break => 8085
);

# --------------------------------------------------------------------------
# nginx.conf

sub conf {
	my $trouble = "xet_url_base http://127.0.0.1:%%PORT_$SHIM%%/shim";

	my %extra = (
		old => 'location /api/v2/ { return 404; }',
		expire => "$trouble/expire;",
		break => "$trouble/break;",
		ranges => 'xet_url_ranges 8;'
	);

	my $text = <<'EOF';
%%MAIN%%

events {
    worker_connections  512;
}

http {
    %%HTTP%%
    %%XET%%

    # as in conf/: clients may compute for a long time between requests

    keepalive_timeout 300s;
    client_body_timeout 300s;
    send_timeout 300s;

    xet_token_key %%DIR%%/token.key;
    xet_token_cache zone=tokens:1m;

    log_format clients "$server_port $request_method $uri $status "
                       "$request_length $http_range";
    access_log %%DIR%%/clients.log clients;
EOF

	for my $name (sort keys %ports) {
		my $more = $extra{$name} // '';
		my $locations = $name eq 'alice'
			? Test::Xet::Token::repo_api() : '%%LOCATIONS%%';

		$text .= <<"EOF";

    server {
        listen 127.0.0.1:%%PORT_$ports{$name}%%;
        root %%STORE%%;
        xet_cors "*";
        $more

        $locations
        location ~ ^/tokens/(?<repo>.+)/(?<scope>read|write|delete)\$ {
            xet_token;
            xet_token_scope \$scope;
            xet_token_repo \$repo;
            xet_token_subject alice;
            xet_token_cas_url http://127.0.0.1:%%PORT_$ports{$name}%%/api;
        }
    }
EOF
	}

	return "$text}\n";
}

sub prepare {
	my ($t) = @_;

	$t->token_key();
	$t->write_conf(conf());
}

# --------------------------------------------------------------------------

sub new {
	my ($class, $t) = @_;

	my $self = bless { t => $t, mark => 0 }, $class;

	$self->{output} = $t->dir() . '/shim.log';
	$self->{pid} = spawn([ Test::Xet::Real::build() . '/venv/bin/python',
		'-u', root() . '/t/clients/hub_shim.py',
		'--port', $t->port($SHIM), '--psql', "$t->{pg}{bin}/psql",
		'--conninfo', $t->conninfo(), '--data', $t->url(''),
		'--npm', Test::Xet::Real::build() . '/npm',
		'--tokens', map { "$_=" . $t->url('/tokens', $ports{$_}) }
			sort keys %ports ], output => $self->{output});

	wait_for(10, sub {
		return eval { $self->calls(); 1 };
	}) or die 'no shim: ' . slurp($self->{output}) . "\n";

	return $self;
}

sub url { return $_[0]->{t}->url('', $SHIM) }
sub endpoint { return $_[0]->{t}->url('/api', $ports{$_[1]}) }

# Returns the requests to the Hub since the last call, as [ method, path,
# status, Range ].

sub calls {
	my ($self) = @_;

	return @{ $self->{t}->get('/shim/calls', undef, port => $SHIM)
		->json() };
}

# Returns the requests to the servers since the last call.

sub requests {
	my ($self) = @_;

	my $log = $self->{t}->read_file('clients.log');
	my $new = substr($log, $self->{mark});
	my @found;

	$self->{mark} = length($log);

	my %names = map { $self->{t}->port($ports{$_}) => $_ } keys %ports;

	for (split(/\n/, $new)) {
		my ($port, $method, $uri, $status, $length, $range)
			= split(/ /, $_, 6);

		next if $uri =~ m!^/tokens/|/telemetry!;

		push @found, { server => $names{$port}, method => $method,
			uri => $uri, status => $status, length => $length,
			range => $range };
	}

	return @found;
}

# Returns the total size of the accepted xorbs in a list of these requests.

sub xorb_bytes {
	my $sum = 0;

	for (@_) {
		$sum += $_->{length} if $_->{method} eq 'POST'
			&& $_->{uri} =~ m!/xorbs?/! && $_->{status} == 200;
	}

	return $sum;
}

# Uploads a file whose terms are every third chunk of a xorb, backwards, so it
# has as many ranges as terms.  Returns { hash, data, ranges }.
#
#     size   size of the data of the xorb, 6 MiB
#     chunk  size of its chunks; by default the chunker cuts them
#     step   distance between two terms, in chunks, 3

sub multi_file {
	my ($self, %o) = @_;

	my $t = $self->{t};
	my $data = random_bytes(20, $o{size} || 6 << 20);
	my $xorb = make_xorb($data, scheme => 'lz4',
		$o{chunk} ? (sizes => [ $o{chunk} ]) : ());
	my @chunks = @{ $xorb->{chunks} };
	my $step = $o{step} || 3;
	my @terms = reverse(grep { $_ % $step == 0 } 0 .. $#chunks);

	my $r = $t->post("/api/v1/xorbs/default/$xorb->{hash}",
		\$xorb->{bytes});
	die "xorb: $r->{status}\n" if $r->{status} != 200;

	my $shard = make_shard({
		files => [ { terms => [ map { { xorb => $xorb->{hash},
			start => $_, end => $_ + 1 } } @terms ] } ],
		xorbs => [ $xorb ]
	});

	$r = $t->post('/api/v1/shards', \$shard->{bytes});
	die "shard: $r->{status}\n" if $r->{status} != 200;

	return { hash => $shard->{files}[0]{hash}, ranges => scalar @terms,
		data => join('', map { substr($data, $chunks[$_]{raw_start},
			$chunks[$_]{raw_length}) } @terms) };
}

# --------------------------------------------------------------------------
# the clients

sub node {
	my ($self, $repo, @args) = @_;

	my $npm = Test::Xet::Real::build() . '/npm';

	die "no client in $npm, run t/clients/setup.sh\n" unless -d $npm;

	open(my $fh, '-|', client_limit(),
		Test::Xet::Real::node_program(),
		root() . '/t/clients/hub_ops.mjs', $npm, $self->url(), $repo,
		@args) or die "node: $!\n";

	return hf_xet_wait($fh);
}

# Runs the client of node() in a browser instead of Node.js, on a page whose
# origin is the Hub.

sub browser {
	my ($self, @args) = @_;

	my $t = $self->{t};
	my $profile = tempdir(CLEANUP => 1);
	my $text = JSON::PP->new()->encode(\@args);

	$text =~ s/([^\w.])/sprintf('%%%02X', ord($1))/ge;

	my $pid = spawn([ 'chromium', '--headless=new', '--no-sandbox',
		'--disable-gpu', '--no-first-run', '--disable-extensions',
		'--disable-background-networking', '--disable-dev-shm-usage',
		'--disable-component-update', "--user-data-dir=$profile",
		$self->url() . "/shim/clients/browser.html#$text" ],
		output => $t->dir() . '/chromium.log');

	my $answer;

	wait_for($ENV{XET_CLIENT_SECONDS} || 120, sub {
		my $body = $t->get('/shim/result', undef, port => $SHIM)
			->{body};

		$answer = JSON::PP->new()->allow_nonref()->decode($body);
		return defined $answer;
	});

	kill('TERM', $pid);
	reap($pid, 10);

	return $answer if $answer && !defined $answer->{error};

	warn 'browser: ', $answer ? $answer->{error} : 'no answer', "\n";
	return undef;
}

# Runs the hf command; returns true on success.  Its output is in {printed}.
# The first argument is the HF_HOME of the machine, or false for a new one.

sub hf {
	my ($self, @args) = @_;

	return $self->hf_wait($self->hf_start(@args));
}

sub hf_start {
	my ($self, $machine, @args) = @_;

	my $hf = Test::Xet::Real::build() . '/clients/huggingface_hub/bin/hf';

	die "no client in $hf, run t/clients/setup.sh\n" unless -x $hf;

	local @ENV{qw/ HF_ENDPOINT HF_TOKEN HF_HOME NO_COLOR
			HF_HUB_DISABLE_TELEMETRY HF_HUB_DISABLE_UPDATE_CHECK
			HF_HUB_DISABLE_PROGRESS_BARS
			HF_XET_CLIENT_RETRY_BASE_DELAY /}
		= ($self->url(), 'hf_test', $machine || tempdir(CLEANUP => 1),
			1, 1, 1, 1, '100ms');
	delete local $ENV{HF_XET_CACHE};

	# setsid: a process group of its own, for hf_kill()

	$self->{hf} = open(my $fh, '-|', 'sh', '-c', 'exec "$@" 2>&1', 'sh',
		'setsid', client_limit(), $hf, @args) or die "$hf: $!\n";

	return $fh;
}

sub hf_kill {
	my ($self, $fh) = @_;

	kill('KILL', -$self->{hf}, $self->{hf});
	close($fh);
}

sub hf_wait {
	my ($self, $fh) = @_;

	local $/;
	$self->{printed} = <$fh>;

	return close($fh);
}

1;

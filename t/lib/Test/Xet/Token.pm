package Test::Xet::Token;

# Copyright (C) the ngx_http_xet_module authors

# Configures a server whose repos are separated by tokens, which the server
# itself issues to every caller.  A part of Test::Xet.
#
#     my $t = Test::Xet->new(Test::Xet::Token::repos());
#
#     $t->token_key();
#     $t->run();
#     $t->get("/api/v1/reconstructions/$hash", $t->auth('read', 'a/a'));

use warnings;
use strict;

# Returns options of Test::Xet->new(): tokens, repos, and more locations if
# any are given.

sub repos {
	my ($more) = @_;

	return (http => token_directive(), locations => join("\n        ",
		repo_api(), $more // (), token_location()));
}

# Returns the same options and an API without tokens: /api/ is for all callers,
# /repo/ for tokens of a repo, /token-api/ for tokens of the store.

sub beside {
	return (http => token_directive(),
		locations => join("\n        ", <<'EOF', token_location()));
location /api/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }

        location /token-api/ {
            xet_api;
            xet_api_base /token-api;
            xet_auth token;
            xet_access store;
        }

        location /repo/ {
            xet_api;
            xet_api_base /repo;
            xet_auth token;
            xet_access repo;
            client_max_body_size 80m;
        }

        location /xorbs/ {
            %%DATA%%
        }
EOF
}

sub token_directive { return 'xet_token_key %%DIR%%/token.key;' }

sub repo_api { return api('/api/', '') }

# Returns the text for %%CAS%% of a configuration: the API for which a Hub
# issues tokens.

sub cas { return api('/cas/', 'xet_api_base /cas;') }

sub api {
	my ($path, $base) = @_;

	return <<"EOF";
location $path {
            xet_api;
            $base
            xet_auth token;
            xet_access repo;
            client_max_body_size 80m;
        }

        location /xorbs/ {
            %%DATA%%
        }
EOF
}

# Returns the location that auth() uses.

sub token_location {
	return <<'EOF';
location ~ ^/token/(?<scope>[a-z]+)/(?<repo>[^@]*)@?(?<subject>.*)$ {
            xet_token;
            xet_token_scope $scope;
            xet_token_repo $repo;
            xet_token_subject $subject;
        }
EOF
}

# Writes the key file of token_directive(); any key works.

sub token_key {
	my ($self) = @_;

	chmod(0600, $self->write_file('token.key',
		'token:t1:' . 'ab' x 32 . "\n"));
}

# Returns headers with a token, which is requested once and reused.  The repo
# may be followed by "@" and a subject.

sub auth {
	my ($self, $scope, $repo) = @_;

	$self->{tokens}{$scope}{$repo}
		||= $self->get("/token/$scope/$repo")->json()->{accessToken};

	return { Authorization => "Bearer $self->{tokens}{$scope}{$repo}" };
}

1;
